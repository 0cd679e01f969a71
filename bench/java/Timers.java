// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers N RUNS MILLION: Java's timers beside hwt's hot path
 *
 * Each peer schedules N timeouts, then N times schedules and at once cancels one more, then
 * cancels the N in random order; by one thread. Delays and order are the same for all, and
 * nothing comes due meanwhile. Peers, in turn, RUNS times after a warm-up:
 *
 *   netty            HashedWheelTimer, ticks of 1 ms, 512 buckets, as hwt's
 *   stpe             ScheduledThreadPoolExecutor that removes what is cancelled
 *   stpe-lazy        the same with its default: what is cancelled stays until it is due
 *   hwt-user         hwt in user space: the program MILLION (../hot/million.c)
 *   hwt-user-malloc  the same, and each timeout comes from malloc()
 *
 * Measured is CPU time, so that other load counts little: the caller's, and ("_cpu") that of
 * the whole process until all is settled, with the timer's own thread, the collector and the
 * compiler; Java tells it in steps of 10 ms. "memory" is that of one timeout, in bytes.
 */
import com.sun.management.OperatingSystemMXBean;
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

public final class Timers {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static boolean warm;
    private static long randomState;
    private static long[] delays;
    private static int[] order;

    private Timers() {
    }

    private interface Peer {
        Object schedule(long delayNs);

        void cancel(Object timeout);

        void close();
    }

    private static final class Netty implements Peer {
        private final HashedWheelTimer timer = new HashedWheelTimer(
            Executors.defaultThreadFactory(), 1, TimeUnit.MILLISECONDS, 512);

        @Override
        public Object schedule(long delayNs) {
            return timer.newTimeout(timeout -> { }, delayNs, TimeUnit.NANOSECONDS);
        }

        @Override
        public void cancel(Object timeout) {
            ((Timeout) timeout).cancel();
        }

        @Override
        public void close() {
            timer.stop();
        }
    }

    private static final class Stpe implements Peer {
        private final ScheduledThreadPoolExecutor executor =
            new ScheduledThreadPoolExecutor(1);

        Stpe(boolean remove) {
            executor.setRemoveOnCancelPolicy(remove);
        }

        @Override
        public Object schedule(long delayNs) {
            return executor.schedule(() -> { }, delayNs, TimeUnit.NANOSECONDS);
        }

        @Override
        public void cancel(Object timeout) {
            ((ScheduledFuture<?>) timeout).cancel(false);
        }

        @Override
        public void close() {
            executor.shutdownNow();
        }
    }

    /* As in ../hot/bench.h. */
    private static long random() {
        long z = randomState += 0x9e3779b97f4a7c15L;

        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /* As in ../hot/million.c. */
    private static void prepare(int n) {
        delays = new long[n];
        order = new int[n];
        randomState = 1;
        for (int i = 0; i < n; i++) {
            order[i] = i;
        }
        for (int i = n; i > 1; i--) {
            int j = (int) Long.remainderUnsigned(random(), i);
            int tmp = order[i - 1];

            order[i - 1] = order[j];
            order[j] = tmp;
        }
        randomState = 1;
        for (int i = 0; i < n; i++) {
            long random = random();

            delays[i] = 30_000_000_000L
                + ((random >>> 8 & (1L << 35) - 1) << (random & 1) * 7);
        }
    }

    private static void print(String peer, String operation, double value) {
        if (warm) {
            System.out.printf("@bench bench=java peer=%s op=%s n=%d unit=%s value=%.2f%n", peer,
                operation, delays.length, operation.equals("memory") ? "bytes" : "ns", value);
        }
    }

    private static void measure(String peer, String operation, Runnable operations)
            throws InterruptedException {
        long cpu = SYSTEM.getProcessCpuTime();
        long time = THREADS.getCurrentThreadCpuTime();

        operations.run();
        time = THREADS.getCurrentThreadCpuTime() - time;
        /* The timer's thread does what is left to it, as in ../hot/million.c. */
        Thread.sleep(300);
        cpu = SYSTEM.getProcessCpuTime() - cpu;
        print(peer, operation, (double) time / delays.length);
        print(peer, operation + "_cpu", (double) cpu / delays.length);
    }

    private static long memory() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static void runJava(String name, Peer peer) throws InterruptedException {
        int n = delays.length;
        Object[] timeouts = new Object[n];
        long before = memory();

        measure(name, "schedule", () -> {
            for (int i = 0; i < n; i++) {
                timeouts[i] = peer.schedule(delays[i]);
            }
        });
        print(name, "memory", (double) (memory() - before) / n);
        measure(name, "pair", () -> {
            for (int i = 0; i < n; i++) {
                peer.cancel(peer.schedule(delays[i]));
            }
        });
        System.gc();
        measure(name, "cancel", () -> {
            for (int i = 0; i < n; i++) {
                peer.cancel(timeouts[order[i]]);
            }
        });
        peer.close();
    }

    private static void runHwt(String name, String... command)
            throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();

        try (BufferedReader reader = new BufferedReader(
                new InputStreamReader(process.getInputStream()))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                String[] fields = line.split(" ");

                print(name, fields[0], Double.parseDouble(fields[1]));
                if (fields.length > 2) {
                    print(name, fields[0] + "_cpu", Double.parseDouble(fields[2]));
                }
            }
        }
        if (process.waitFor() != 0) {
            throw new IOException(String.join(" ", command) + " failed");
        }
    }

    private static void round(String million) throws IOException, InterruptedException {
        String n = Integer.toString(delays.length);

        runJava("netty", new Netty());
        runJava("stpe", new Stpe(true));
        runJava("stpe-lazy", new Stpe(false));
        runHwt("hwt-user", million, n);
        runHwt("hwt-user-malloc", million, n, "malloc");
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        int n = Integer.parseInt(args[0]);
        int runs = Integer.parseInt(args[1]);

        System.out.printf("java: warming up, then %d rounds of %d timeouts%n", runs, n);
        prepare(n / 10);
        for (int i = 0; i < 5; i++) {
            round(args[2]);
        }
        warm = true;
        prepare(n);
        for (int i = 0; i < runs; i++) {
            System.out.printf("java: round %d of %d%n", i + 1, runs);
            round(args[2]);
        }
    }
}
