package ottla;

import java.io.IOException;
import java.util.Collections;
import java.util.Enumeration;

/** What the class path offers, but for the providers of one service. */
public class WithoutService extends ClassLoader {
    private final String hidden;

    public WithoutService(ClassLoader parent, String service) {
        super(parent);
        this.hidden = "META-INF/services/" + service;
    }

    public Enumeration getResources(String name) throws IOException {
        return name.equals(hidden) ? Collections.emptyEnumeration() : super.getResources(name);
    }
}
