#!/bin/bash
# Starts a separate SLURM on loopback, without systemd and munge, and prints "ready". Stops it and
# removes DIRECTORY when standard input ends, however its owner ended.
#   lab.sh DIRECTORY PORT NODE...     n* have 4 sockets of 2 cores, m* 2 sockets of 8 CCDs of 8 cores
set -u
lab=$1 port=$2
shift 2
export SLURM_CONF=$lab/slurm.conf PATH=$PATH:/usr/sbin:/sbin
user=$(id -un) host=$(hostname -s)
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$lab/state" "$lab/log"
cc -O2 -shared -fPIC -o "$lab/fold.so" "$here/fold.c" || { echo "failed: cc"; exit 1; }

configuration() {
  cat <<CONF
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$port
SlurmctldPidFile=$lab/slurmctld.pid
SlurmdPidFile=$lab/slurmd.%n.pid
StateSaveLocation=$lab/state
SlurmdSpoolDir=$lab/spool.%n
SlurmctldLogFile=$lab/log/slurmctld.log
SlurmdLogFile=$lab/log/slurmd.%n.log
SlurmdParameters=l3cache_as_socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
JobCompType=jobcomp/none
JobRequeue=0
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
KillWait=2
CONF
  local next=$port node
  for node in "$@"; do
    next=$((next + 1))
    case $node in
      m*) echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$next CPUs=128 Boards=1 SocketsPerBoard=16 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000" ;;
      *) echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$next CPUs=8 Boards=1 SocketsPerBoard=4 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1000" ;;
    esac
  done
  local small=() big=()
  for node in "$@"; do
    case $node in m*) big+=("$node") ;; *) small+=("$node") ;; esac
  done
  list() { local IFS=,; echo "$*"; }
  echo "PartitionName=lab Nodes=$(list "${small[@]}") Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO"
  [ ${#big[@]} -eq 0 ] || echo "PartitionName=big Nodes=$(list "${big[@]}") MaxTime=INFINITE State=UP OverSubscribe=NO"
}
configuration "$@" >"$SLURM_CONF"

slurmctld -D </dev/null >"$lab/log/out" 2>&1 &
controller=$!
nodes=()
for node in "$@"; do
  mkdir -p "$lab/spool.$node"
  case $node in m*) shape='pack:2 l3:8 core:8 pu:1' ;; *) shape='pack:4 l3:1 core:2 pu:1' ;; esac
  LD_PRELOAD=$lab/fold.so HWLOC_SYNTHETIC=$shape slurmd -D -N "$node" </dev/null >"$lab/log/out.$node" 2>&1 &
  nodes+=($!)
done

stop() {
  local i
  scancel -u "$user" 2>/dev/null
  for i in $(seq 100); do
    [ -z "$(squeue -h 2>/dev/null)" ] && break
    sleep 0.05
  done
  # The nodes' daemons first: without their controller they are slow to end.
  end "${nodes[@]}"
  end "$controller"
  # Steps of a node that was declared lost keep running; processes with our library are ours.
  local left
  left=$(grep -ls "$lab/fold.so" /proc/[0-9]*/maps | cut -d/ -f3)
  [ -z "$left" ] || kill -9 $left 2>/dev/null
  rm -rf "$lab"
}
end() {
  local i
  kill "$@" 2>/dev/null
  for i in $(seq 200); do
    kill -0 "$@" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 "$@" 2>/dev/null
  wait "$@" 2>/dev/null
}
trap 'stop; exit 0' TERM INT HUP

for i in $(seq 150); do
  [ "$(sinfo -h -o %T 2>/dev/null | sort -u)" = idle ] && break
  # Without a controller, each sinfo takes ten seconds.
  kill -0 "$controller" 2>/dev/null || break
  sleep 0.1
done
if kill -0 "$controller" 2>/dev/null && [ "$(sinfo -h -o %T 2>/dev/null | sort -u)" = idle ]; then
  echo ready
  cat >/dev/null
else
  echo "failed: $(tail -n 5 "$lab"/log/* | tr '\n' ' ')"
fi
stop
