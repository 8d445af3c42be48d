/*
 * Busy.java - as busy.c, in Java: the virtual machine makes code while it runs, stops its threads by
 * page faults, and turns SIGSEGV into exceptions.  For tests/whole/languages.t, which has the class as
 * well, since a machine that runs Java need not have a compiler.
 */
public class Busy extends Thread {
	static volatile boolean over;
	static volatile long sink;
	static final Object lock = new Object();
	static int[] none;

	static long burnHere(long n) {
		long sum = 0;
		for (int i = 0; i < 300000; i++)
			sum += i ^ n;
		return sum;
	}

	static void holdHere() {
		synchronized (lock) {
			sink += burnHere(sink);
		}
	}

	static void faultHere() {
		try {
			none[1] = 2;
			System.exit(9);
		} catch (NullPointerException e) {
			sink++;
		}
	}

	public void run() {
		while (!over) {
			holdHere();
			faultHere();
			sink += new byte[100000].length;
			try {
				Thread.sleep(1);
			} catch (InterruptedException e) {
				System.exit(8);
			}
		}
	}

	public static void main(String[] args) throws Exception {
		System.out.println("started");
		System.in.read();
		Thread[] workers = { new Busy(), new Busy() };
		for (Thread t : workers)
			t.start();
		while (System.in.read() >= 0)
			;
		over = true;
		for (Thread t : workers)
			t.join();
		System.out.println("fine");
		System.exit(3);
	}
}
