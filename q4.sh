cd /tmp/finder2/g; NL=/tmp/w/finder/target/release/numalab
(time timeout 150 $NL guest run --emulate 2 --cpus 2 --accel tcg --with numactl --with sysbench -- sh -c 'numactl -H; numalab selftest; numalab machine selftest --real-nodes --dry-run | head -20; numalab bind --numa=0,1 --policy interleave -- numactl -s; cat /proc/self/status | grep -i seccomp; exit 300'; echo rc $?) > u1.txt 2>&1
(time timeout 100 $NL guest run --emulate 2 --cpus 2 --accel tcg -- sh -c 'kill -9 $$'; echo rc $?) > u2.txt 2>&1
(time timeout 100 $NL guest run --emulate 2 --cpus 2 --accel tcg -- sh -c 'echo c > /proc/sysrq-trigger'; echo rc $?) > u3.txt 2>&1
(time timeout 60 $NL guest run --emulate 2 --cpus 2 --memory 128M --accel tcg -- true; echo rc $?) > u4.txt 2>&1
(time timeout 60 $NL guest run --emulate 2 --cpus 2 --accel tcg -- sh -c 'seq 1 200000 | tail -1; head -c 20000000 /dev/zero | wc -c; echo err >&2; read x; echo "in: $x"' < /etc/hostname; echo rc $?) > u5.txt 2>&1
