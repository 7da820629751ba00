#!/bin/sh
# Packs a built program with its licences, README, manual pages and completions, and writes the archive's SHA-256.
#     scripts/pack_binary.sh PROGRAM TARGET FOLDER
# PROGRAM must run here unless HELPER names one that does.
set -eu
program=$1 target=$2 out=$3
helper=${HELPER:-$program}
version=$("$helper" --version | sed -n '1s|.* ||p')
name=gmm-bmm-$version-$target
folder=$out/$name
rm -rf "$folder"
mkdir -p "$folder/completions"
cp "$program" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
"$helper" man "$folder/man" >/dev/null
for shell in bash zsh fish; do "$helper" completions "$shell" >"$folder/completions/gmm-bmm.$shell"; done
case $target in
*windows*) archive=$name.zip; (cd "$out" && 7z a -bso0 "$archive" "$name") ;;
*) archive=$name.tar.gz; tar -czf "$out/$archive" -C "$out" "$name" ;;
esac
rm -rf "$folder"
if command -v sha256sum >/dev/null; then sum=sha256sum; else sum='shasum -a 256'; fi
(cd "$out" && $sum "$archive" >"$archive.sha256")
echo "$out/$archive"
