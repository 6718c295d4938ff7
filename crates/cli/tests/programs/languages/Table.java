/** Four threads read a table that the first one filled. */
public final class Table {
    private static final int COUNT = 1 << 18;

    public static void main(String[] words) throws InterruptedException {
        long[] table = new long[COUNT];
        java.util.Arrays.fill(table, 1);
        long[] sums = new long[4 * 8];
        Thread[] threads = new Thread[4];
        for (int part = 0; part < 4; part++) {
            int own = part;
            threads[part] = new Thread(() -> {
                for (int at = own; at < COUNT; at += 8) sums[own * 8] += table[at];
            });
            threads[part].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(sums[0] + sums[8] + sums[16] + sums[24]);
    }
}
