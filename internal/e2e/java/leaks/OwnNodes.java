/** Leaks: a chain of the program's own nodes, which no array and no library collection holds. */
public class OwnNodes {
    static final class Node {
        final Node next;
        final short[] data = new short[100]; // LEAK

        Node(Node next) { this.next = next; }
    }

    static Node head;

    public static void main(String[] args) throws Exception {
        Work.until(args, 1000, i -> { for (int k = 0; k < 3; k++) head = new Node(head); }); // LEAK: the node
    }
}
