# The script of the guest of guest.rs; a test checks each part of its output.
# CHASE is the program that chases through memory placed by the system.
echo 0 > /proc/sys/kernel/numa_balancing
# By default Linux scans for memory to move every second, and here every tenth of a second.
for setting in scan_delay_ms scan_period_min_ms; do
  echo 100 > /sys/kernel/debug/sched/numa_balancing/$setting
done
latency='numalab latency --size 1M --per node --pages 4k --seed 1 --format csv -q'
echo '== matrix'; $latency
echo '== again'; $latency --cpus 6
echo '== says'; numalab latency --size 1M --cpus 0 --nodes 0 --pages 4k --seed 1
for node in 0 1 2 3; do
  echo "== numactl $node"; numactl --physcpubind=0 --membind=$node CHASE 0 0 2 4k 1 0
done
echo '== first touch'; CHASE 6 0 2 4k 1 0
echo '== bind'; numalab bind -q --numa=2 -- CHASE 0 0 2 4k 1 0
echo '== preferred'; numalab bind -q --numa=1 --policy preferred -- CHASE 0 0 2 4k 1 0
echo '== interleave'; numalab bind -q --numa=0,1,2,3 --policy interleave -- CHASE 0 0 2 4k 1 0
echo always > /sys/kernel/mm/transparent_hugepage/enabled
echo '== huge'; numalab bind -q --numa=2 -- CHASE 0 0 4 thp 1 0
echo '== stays'; CHASE 6 0 2 4k 3 400
echo 1 > /proc/sys/kernel/numa_balancing
echo '== moves'; CHASE 6 0 2 4k 5 200
echo 0 > /proc/sys/kernel/numa_balancing
echo '== selftest'; numalab machine selftest --real-nodes --size 2M --time 500ms --format json -q
echo '== put back'; cat /proc/sys/kernel/numa_balancing /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
echo '== marked'; numalab mark --phase walk -- CHASE 0 0 1 4k 1 0
# Fills node 3 with huge pages and with data read from disks, which stay in memory as long as a
# process has the disk open. Linux gives fewer huge pages where free memory is fragmented, so disks
# are read until the node is full. Freed pages go to the node, not to a cpu's list; such lists still
# hold up to 2 MiB, and give them back within 3 s (`vmstat_update`), after which one more disk takes
# them. Linux raises a node's watermarks for a while where it mixes kinds of pages in one block, and
# kswapd then frees as much: a node that is full by the raised ones is not full afterwards.
boost=$(cat /proc/sys/vm/watermark_boost_factor)
echo 0 > /proc/sys/vm/watermark_boost_factor
echo 100000 > /proc/sys/vm/percpu_pagelist_high_fraction
huge=/sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages
free=$(awk '/MemFree/ { print $4 }' /sys/devices/system/node/node3/meminfo)
echo $(( (free - 49152) / 2048 )) > $huge
exec 3< /dev/ram0 4< /dev/ram1 5< /dev/ram2 6< /dev/ram3 7< /dev/ram4 8< /dev/ram5
# No page of a node is taken below its low watermark.
full() {
  awk '/^Node 3, zone *DMA32/ { here = 1 } here && /pages free/ { free = $3 }
    here && $1 == "low" { exit !(free < $2 + 100) }' /proc/zoneinfo
}
for disk in 0 1 2 3 4 5; do
  full && sleep 5 && full && break
  numactl --physcpubind=6 cat /dev/ram$disk > /dev/null
done
for mode in 0 1; do
  echo $mode > /proc/sys/vm/zone_reclaim_mode
  echo "== reclaim $mode"; CHASE 6 6 8 4k 1 0
done
echo 0 > /proc/sys/vm/zone_reclaim_mode
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&-
echo 0 > $huge
echo 0 > /proc/sys/vm/percpu_pagelist_high_fraction
echo $boost > /proc/sys/vm/watermark_boost_factor
echo '== weights'
weights=/sys/kernel/mm/mempolicy/weighted_interleave
if test -d $weights; then
  echo 3 > $weights/node0; echo 1 > $weights/node3
  numalab bind -q --numa=0,3 --policy weighted -- CHASE 0 0 2 4k 1 0
else
  echo none in Linux $(uname -r)
fi
bandwidth='numalab bandwidth --kernel read --size 4M --pages 4k --nodes 0 --seed 1 --format csv -q'
echo '== one reader'; $bandwidth --cpus 0
echo '== two readers'; $bandwidth --cpus 0,1
