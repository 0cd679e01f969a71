// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels N...: Netty's HashedWheelTimer, and libhwt's timers, called from Java by the
 * foreign-function interface of JDK 17
 *
 * Prints the CPU time of the process in several rounds, ns an operation. It has what threads of a
 * peer do until 300 ms after the last operation, and the collection of garbage. "due" is a second
 * and 20 us for each timer in the future, in real time.
 */
import static jdk.incubator.foreign.CLinker.*;
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import jdk.incubator.foreign.*;

class Wheels {
	static final AtomicInteger fired = new AtomicInteger();

	abstract static class Peer {
		abstract void set(int i, long ns) throws Throwable;
		abstract void stop(int i) throws Throwable;
		void run() throws Throwable {}		/* a peer without a thread calls back */
		abstract void close() throws Throwable;
	}

	static class Netty extends Peer {
		final HashedWheelTimer timer =
			new HashedWheelTimer(100, TimeUnit.MILLISECONDS, 512);
		final Timeout[] timeouts;

		Netty(int n) {
			timeouts = new Timeout[n];
		}

		void set(int i, long ns) {
			stop(i);
			timeouts[i] = timer.newTimeout(timeout -> fired.incrementAndGet(), ns,
						       TimeUnit.NANOSECONDS);
		}

		void stop(int i) {
			if (timeouts[i] != null)
				timeouts[i].cancel();
		}

		void close() {
			timer.stop();
		}
	}

	/* Return a C function of pointers, named by P in @types, and longs, named by J. */
	static MethodHandle c(SymbolLookup library, String name, Class<?> result, String types) {
		MethodType type = MethodType.methodType(result);
		FunctionDescriptor c = result == void.class ? FunctionDescriptor.ofVoid() :
			FunctionDescriptor.of(result == long.class ? C_LONG : C_POINTER);

		for (char t : types.toCharArray()) {
			type = type.appendParameterTypes(t == 'P' ? MemoryAddress.class :
							 long.class);
			c = c.withAppendedArgumentLayouts(t == 'P' ? C_POINTER : C_LONG);
		}
		return getInstance().downcallHandle(library.lookup(name).get(), type, c);
	}

	static class Libhwt extends Peer {
		static { System.loadLibrary("hwt"); }
		static final SymbolLookup lib = SymbolLookup.loaderLookup();
		static final MethodHandle create = c(lib, "libhwt_timers_new", MemoryAddress.class, "P");
		static final MethodHandle set = c(lib, "libhwt_timer_set_slack", void.class, "PPJJ");
		static final MethodHandle stop = c(lib, "libhwt_timer_stop", void.class, "PP");
		static final MethodHandle run = c(lib, "libhwt_timers_run", void.class, "P");
		static final MethodHandle free = c(lib, "libhwt_timers_free", void.class, "P");
		/* Of a struct libhwt_timer with padding; of its members. */
		static final long SIZE = 64, DEADLINE = 24, FN = 40;

		final MemorySegment timers;
		final MemoryAddress base, hwt;

		static void fire(MemoryAddress timer) {
			fired.incrementAndGet();
		}

		Libhwt(int n) throws Throwable {
			MethodType type = MethodType.methodType(void.class, MemoryAddress.class);
			MethodHandle fire = MethodHandles.lookup().findStatic(Libhwt.class, "fire", type);
			MemoryAddress fn = getInstance().upcallStub(fire,
				FunctionDescriptor.ofVoid(C_POINTER), ResourceScope.globalScope());

			timers = MemorySegment.allocateNative(n * SIZE, SIZE, ResourceScope.newImplicitScope());
			base = timers.address();
			hwt = (MemoryAddress)create.invokeExact((MemoryAddress)MemoryAddress.NULL);
			/* libhwt_timer_init(): neither linked nor set, and the callback */
			for (long at = 0; at < n * SIZE; at += SIZE) {
				MemoryAccess.setLongAtOffset(timers, at, -1L);
				MemoryAccess.setLongAtOffset(timers, at + DEADLINE, -1L);
				MemoryAccess.setAddressAtOffset(timers, at + FN, fn);
			}
		}

		void set(int i, long ns) throws Throwable {
			set.invokeExact(hwt, base.addOffset(i * SIZE), ns, 0L);
		}

		void stop(int i) throws Throwable {
			stop.invokeExact(hwt, base.addOffset(i * SIZE));
		}

		void run() throws Throwable {
			run.invokeExact(hwt);
		}

		void close() throws Throwable {
			free.invokeExact(hwt);
		}
	}

	static final MethodHandle clock = c(CLinker.systemLookup(), "clock", long.class, "");

	interface Operation {
		void call(int i) throws Throwable;
	}

	static void measure(Peer peer, String name, String op, int n, long wait, Operation call)
			throws Throwable {
		long begin = (long)clock.invokeExact();
		/* All timers once, far from one another: the factor has no divisor in common with n. */
		for (long i = 0; i < n; i++)
			call.call((int)(i * 2654435761L % n));
		peer.run();
		Thread.sleep(wait);
		peer.run();
		System.out.printf("@bench bench=java peer=%s op=%s n=%d unit=ns value=%.1f%n", name, op,
				  n, 1000.0 * ((long)clock.invokeExact() - begin) / n);
	}

	static void round(Peer peer, String name, int n) throws Throwable {
		long minute = 60_000_000_000L, due = 1_000_000_000L + n * 20_000L;

		measure(peer, name, "create", n, 300, i -> peer.set(i, minute + i * 1000L));
		measure(peer, name, "push-back", n, 300, i -> peer.set(i, 2 * minute + i * 1000L));
		measure(peer, name, "stop", n, 300, i -> peer.stop(i));
		for (int i = 0; i < n; i++)
			peer.set(i, due);
		peer.run();
		fired.set(0);
		measure(peer, name, "expire", n, due / 1_000_000 + 300, i -> {});
		if (fired.get() != n)
			throw new AssertionError(name + ": " + fired.get() + " have fired");
		peer.close();
	}

	public static void main(String[] args) throws Throwable {
		for (String arg : args) {
			int n = Integer.parseInt(arg);
			for (int i = 0; i < 5; i++) {
				round(new Netty(n), "netty", n);
				round(new Libhwt(n), "libhwt", n);
			}
		}
	}
}
