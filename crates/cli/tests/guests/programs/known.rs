//! Programs for tests of predictions and profiles.

/// Arguments of `answers.c` for programs with a known right placement.
pub(crate) const SYNTHETIC: [&str; 14] = [
    "first-touch 8",
    "false-sharing 2",
    "one-node 8",
    "table 8",
    "streams 8",
    "compute 4",
    "hand-over 8",
    "neighbours 8",
    "hot-node 8",
    "migrating 8 1",
    "pages 16",
    "scattered 8",
    "bandwidth 16",
    "mixed 8",
];

/// Programs of the distribution: a name, and a shell command. Paths are absolute if a guest's shell
/// has a built-in of that name, or a user may have another version.
pub(crate) const REAL: [(&str, &str); 12] = [
    ("stream (OpenMP)", "OMP_NUM_THREADS=4 exec $LAB/stream"),
    ("sysbench memory", "exec sysbench memory --threads=4 --memory-total-size=16M --time=0 run"),
    ("sysbench mutex", "exec sysbench mutex --threads=4 --mutex-locks=500 --mutex-loops=100 run"),
    ("stress-ng vm", "exec stress-ng --vm 1 --vm-bytes 2M --vm-ops 200 --no-rand-seed"),
    ("sqlite3", "exec sqlite3 :memory: <$LAB/rows.sql"),
    ("gzip", "exec /usr/bin/gzip -nc $LAB/text"),
    ("zstd", "exec zstd -q -T4 -c $LAB/text"),
    ("xz", "exec /usr/bin/xz -0 -T4 -c $LAB/text"),
    ("sort", "exec /usr/bin/sort --parallel=4 -S 8M $LAB/text"),
    ("gcc", "exec gcc -ffreestanding -O1 -S -o /dev/null $LAB/small.c"),
    ("python3", "exec /usr/bin/python3 -c 'print(sum(len(str(i)) for i in range(20000)))'"),
    (
        "redis",
        "redis-server --save '' --port 0 --unixsocket $LAB/redis.sock --daemonize no & \
         until redis-cli -s $LAB/redis.sock ping >/dev/null 2>&1; do sleep 0.1; done; \
         redis-benchmark -s $LAB/redis.sock -q -n 500 -c 4 -t set,get >/dev/null; \
         redis-cli -s $LAB/redis.sock shutdown nosave; wait",
    ),
];
