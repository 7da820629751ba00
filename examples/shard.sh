#!/bin/sh
# Learns one shard: shard.sh NUMBER FILE. The environment has SHARDS (the folder of prior.json and of the shards), COUNT
# (the number of shards), WARMUP (the number of rows of the first file that the prior contains) and GMM_BMM (the program).
set -eu

number=$1 part=$2
out=$SHARDS/shard-$number.json
# A file appears whole or not at all, so an existing shard is complete.
if [ -s "$out" ]; then
    exit 0
fi
skip=0
if [ "$number" = 1 ]; then
    skip=$WARMUP
fi
exec "$GMM_BMM" fit --quiet --data "$part" --skip "$skip" --prior "$SHARDS/prior.json" --shard "$number/$COUNT" --out "$out"
