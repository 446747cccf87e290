package ottla;

/** What Python in the driver tells about streams: where they begin, how far they go, of which parts a batch is made. */
public interface Planning {
    /** An answer behind `=`, or behind `!` how it failed. What a question has no use for is null. */
    String ask(String stream, String question, String start, String end);
}
