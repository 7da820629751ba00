#!/bin/sh
# Learns one shard: shard.sh NUMBER FILE, with SHARDS (folder of prior.json and of the shards), COUNT (how many there are),
# WARMUP (rows of the first file that are in the prior) and GMM_BMM in the environment.
set -eu

number=$1 part=$2
out=$SHARDS/shard-$number.json
# A file appears whole or not at all, so one that is there is done.
if [ -s "$out" ]; then
    exit 0
fi
skip=0
if [ "$number" = 1 ]; then
    skip=$WARMUP
fi
exec "$GMM_BMM" fit --quiet --data "$part" --skip "$skip" --prior "$SHARDS/prior.json" --shard "$number/$COUNT" --out "$out"
