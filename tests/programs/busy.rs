// busy.rs - as busy.c, in Rust, where panics unwind the stack.  For tests/whole/languages.t.
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// What the compiler knows nothing of; std::hint's is newer than Debian 12's Rust.
fn black_box<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

#[inline(never)]
fn burn_here(n: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..200_000u64 {
        sum = black_box(sum.wrapping_add(i ^ n));
    }
    sum
}

#[inline(never)]
fn keep_here(fill: u8) -> Vec<u8> {
    vec![black_box(fill); 1000]
}

#[inline(never)]
fn panic_here(n: u64) {
    if black_box(n) > 0 {
        std::panic::resume_unwind(Box::new(n));
    }
}

#[inline(never)]
fn wait_here() {
    let mut line = String::new();
    while std::io::stdin().lock().read_line(&mut line).unwrap() > 0 {}
}

fn worker(which: u8, over: &AtomicBool, shared: &(Mutex<u64>, Condvar)) -> bool {
    let mut kept = Vec::new();
    let mut n = 1u64;
    while !over.load(Ordering::Acquire) {
        if kept.len() < 4000 {
            kept.push(keep_here(which));
        }
        let caught = std::panic::catch_unwind(|| panic_here(n)).unwrap_err();
        if *caught.downcast::<u64>().unwrap() != n {
            return false;
        }
        *shared.0.lock().unwrap() ^= burn_here(n);
        let held = shared.0.lock().unwrap();
        drop(shared.1.wait_timeout(held, Duration::from_millis(1)).unwrap());
        n += 1;
    }
    kept.iter().all(|block| block[999] == which)
}

fn main() {
    let mut line = String::new();
    println!("started");
    std::io::stdout().flush().unwrap();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let shared = Arc::new((Mutex::new(0u64), Condvar::new()));
    let workers: Vec<_> = (1..3u8)
        .map(|which| {
            let (over, shared) = (over.clone(), shared.clone());
            std::thread::spawn(move || worker(which, &over, &shared))
        })
        .collect();
    wait_here();
    over.store(true, Ordering::Release);
    let right = workers.into_iter().all(|w| w.join().unwrap());
    println!("{}", if right { "fine" } else { "wrong" });
    std::process::exit(3);
}
