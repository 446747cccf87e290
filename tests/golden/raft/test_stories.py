"""The quorum of the metadata log, told as stories (KIP-595, 853, 996)."""

from pathlib import Path

from ottla.raft.exchange import AddVoterRequest, RemoveVoterRequest
from tests.golden.raft.quorum import Story
from tests.golden.transcripts import compare
from tests.rules.raft.scene import Member, a_voter, key

HERE = Path(__file__).parent


def three(**more: tuple[int, ...]) -> Story:
    return Story({node_id: Member(node_id, epochs=more.get(f"log{node_id}", ())) for node_id in (1, 2, 3)})


def elected() -> Story:
    """Node 1 leads in epoch 1, and everybody has its first record."""
    story = three()
    story.at(50)
    story.deliver()
    for _ in range(3):
        story.at(story.now + 1)
        story.deliver()
    story.lines.clear()
    return story


def test_the_first_election() -> None:
    story = three()
    story.say(
        "Nobody has voted yet. All start at once and the dice fall alike: all three ask whether they would win.",
        "Node 1 hears first that it would. Then it votes for itself, asks for votes, and leads. Its first record",
        "makes the epoch known; followers fetch it, and ask for more when they have it on the disk: that commits it.",
    )
    story.at(50)
    story.deliver()
    story.roles()
    compare(HERE / "first_election.txt", story.lines)


def test_a_record_is_committed_when_a_majority_has_it_on_the_disk() -> None:
    story = elected()
    story.roles()
    story.say("Node 3 is cut off. One follower is enough.")
    story.cut_off(3)
    story.append(1, 42)
    story.deliver()
    story.roles()
    story.say("It comes back, and catches up with one fetch.")
    story.heal()
    story.at(story.now + 40)
    story.deliver()
    story.roles()
    compare(HERE / "commit.txt", story.lines)


def test_a_leader_that_is_cut_off_loses_what_it_could_not_commit() -> None:
    story = elected()
    story.say("The leader is cut off and takes a record that nobody else sees.")
    story.cut_off(1)
    story.append(1, 13)
    story.say("The others wait for their fetch timeout, ask each other first, and vote.")
    for now in (100, 200, 2200, 2300, 4300, 4400):
        story.at(now)
        story.deliver()
        if any(type(m.quorum.role).__name__ == "Leader" for n, m in story.members.items() if n != 1):
            break
    story.roles()
    story.say("A record of the new leader.")
    leader = next(n for n, m in story.members.items() if n != 1 and type(m.quorum.role).__name__ == "Leader")
    story.append(leader, 14)
    for _ in range(3):
        story.at(story.now + 25)
        story.deliver()
    story.say("The old leader comes back: it learns of the new epoch and cuts its log back to where both agree.")
    story.heal()
    for _ in range(4):
        story.at(story.now + 600)
        story.deliver()
    story.roles()
    compare(HERE / "cut_off_leader.txt", story.lines)


def test_a_node_that_comes_back_does_not_disturb_a_leader_that_others_hear() -> None:
    story = elected()
    story.say("Node 3 hears nothing for longer than its fetch timeout, and asks for votes of the next epoch (PreVote).")
    story.cut_off(3)
    story.heal()
    member = story.members[3]
    story.now = 2_500
    story._note(3, "2500 ms", member.tick(2_500))
    story.deliver()
    story.roles()
    compare(HERE / "pre_vote.txt", story.lines)


def test_a_voter_is_added_and_another_removed() -> None:
    members = {n: Member(n, (1, 2), dynamic=True, can_vote=True) for n in (1, 2)}
    members[3] = Member(3, (1, 2), dynamic=True)
    story = Story(members)
    for now in (50, 51, 52):
        story.at(now)
        story.deliver()
    story.lines.clear()
    story.say("Node 3 follows as an observer until it is asked to vote (KIP-853).")
    story.at(story.now + 30)
    story.deliver()
    story.roles()
    story.request(1, AddVoterRequest(a_voter(3), True, 5_000))
    for _ in range(3):
        story.at(story.now + 30)
        story.deliver()
    story.roles()
    story.say("Node 2 goes.")
    story.request(1, RemoveVoterRequest(key(2)))
    for _ in range(3):
        story.at(story.now + 30)
        story.deliver()
    story.roles()
    compare(HERE / "voter_changes.txt", story.lines)
