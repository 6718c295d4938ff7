//! Follows a process through fork(2): in the child, only the thread that forked exists.

use std::cell::RefCell;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use super::{Order, Turns, own_tid};

static TURNS: OnceLock<&'static Turns> = OnceLock::new();

thread_local! {
    /// The lock, held over fork(2) so that the child finds the order consistent and can unlock it.
    static HELD: RefCell<Option<MutexGuard<'static, Order>>> = const { RefCell::new(None) };
}

impl Turns {
    /// Registers handlers for fork(2).
    pub fn follow_forks(&'static self) {
        if TURNS.set(self).is_ok() {
            // SAFETY: the functions take no arguments, and live as long as the process.
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        }
    }

    /// Makes the calling thread the only one.
    fn is_alone(&self, order: &mut Order) {
        let own = thread::current().id();
        let is_own =
            |host: &Option<super::Host>| host.as_ref().is_some_and(|of| of.thread.id() == own);
        let Some(seat) = order.hosts.iter().position(is_own) else { return };
        for (of, host) in order.hosts.iter_mut().enumerate() {
            if of != seat {
                *host = None;
            }
        }
        if let Some(host) = &mut order.hosts[seat] {
            // The thread continues in the child under another id.
            host.tid = own_tid();
        }
        order.schedule.keeps_only(seat);
        order.forget_others();
        // The watch was another thread, so the child has none.
        self.watched.store(false, Relaxed);
        if self.is_holder(seat) || order.schedule.is_ready(seat) {
            self.give(order);
        }
    }
}

extern "C" fn before() {
    if let Some(turns) = TURNS.get() {
        HELD.set(Some(turns.order()));
    }
}

extern "C" fn in_parent() {
    HELD.set(None);
}

extern "C" fn in_child() {
    if let (Some(turns), Some(mut order)) = (TURNS.get(), HELD.take()) {
        turns.is_alone(&mut order);
    }
}
