#!/usr/bin/env bash
# Starts docker/compose.ray.yaml from images that are already built, and sends speech and chat requests.
# Then kills one of the two nodes during streams, and stops the server during another stream.
#
#   docker/image-test-ray.sh
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
name=nano-omni-ray-test-$$
work=$(mktemp -d)
compose=(docker compose)
docker compose version >/dev/null 2>&1 || compose=(docker-compose)
compose+=(-p "$name" -f "$root/docker/compose.ray.yaml")
export RAY_AUTH_TOKEN PORT=0
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')

cleanup() {
    "${compose[@]}" down -v >"$work/down" 2>&1 || cat "$work/down" >&2
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "image-test-ray: $*" >&2
    "${compose[@]}" logs --tail 20 >&2 || true
    exit 1
}

seconds_since() {
    awk -v ns=$(($(date +%s%N) - $1)) 'BEGIN { printf "%.1f s", ns / 1e9 }'
}

speak() {
    curl -fsS -m 60 "$url/v1/audio/speech" -o "$work/speech.mp3" \
        -d '{"model": "tts-1", "voice": "alloy", "input": "Hello from a cluster."}'
    [ "$(stat -c %s "$work/speech.mp3")" -gt 5000 ] || fail "the speech is too short"
}

# chat FILE: start a long stream in the background that writes to FILE. FILE.done exists once it ends.
chat() {
    {
        curl -sSN "$url/v1/chat/completions" >"$1" 2>"$1.err" -d '{"model": "smollm2-joe", "stream": true,
            "seed": 1, "max_tokens": 250, "modalities": ["text", "audio"],
            "audio": {"voice": "joe", "format": "pcm16"},
            "messages": [{"role": "user", "content": "Tell me a long story about a lighthouse."}]}' || true
        touch "$1.done"
    } &
    until [ -s "$1" ]; do
        [ ! -e "$1.done" ] || fail "the stream did not start: $(cat "$1.err")"
        sleep 0.05
    done
}

# num_workers CONTAINER: print how many stage workers run in the container.
num_workers() {
    docker top "$1" -eo pid,args | grep -c " ray::StageActor" || true
}

until_ready() {
    until curl -fs -o "$work/ready" "$url/health/ready"; do
        [ $(($(date +%s%N) - began)) -lt 240000000000 ] || fail "the server is not ready after 240 s"
        sleep 0.2
    done
}

began=$(date +%s%N)
"${compose[@]}" up -d >"$work/up" 2>&1 || { cat "$work/up" >&2; fail "docker compose up failed"; }
server=$("${compose[@]}" ps -q server)
mapfile -t nodes < <("${compose[@]}" ps -q node)
url=http://$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$server"):8000
until_ready
echo "ready after $(seconds_since "$began"): a head, ${#nodes[@]} nodes and a server"
[ "$(docker inspect -f '{{.RestartCount}}' "$server" "${nodes[@]}" | sort -u)" = 0 ] || fail "a container was restarted"
for node in "${nodes[@]}"; do
    [ "$(num_workers "$node")" -gt 0 ] || fail "a node runs no worker"
done
speak

# Some streams use workers of the node that is killed; they fail. The others must not notice.
for k in $(seq 8); do chat "$work/stream-$k"; done
began=$(date +%s%N)
docker kill "${nodes[0]}" >/dev/null
until grep -qs '"error":{' "$work"/stream-?; do
    [ "$(find "$work" -name 'stream-?.done' | wc -l)" -lt 8 ] || fail "no stream got an error"
    sleep 0.05
done
echo "the first stream failed $(seconds_since "$began") after its node was killed"
until [ "$(find "$work" -name 'stream-?.done' | wc -l)" = 8 ]; do sleep 0.1; done
failed=0
for k in $(seq 8); do
    errors=$(grep -c '"error":{' "$work/stream-$k" || true)
    ends=$(grep -c '^data: \[DONE\]' "$work/stream-$k" || true)
    [ $((errors + ends)) = 1 ] || fail "stream $k has $errors errors and $ends ends"
    failed=$((failed + errors))
done
echo "$failed of 8 streams ended with one error, the others with [DONE]"
until_ready
echo "ready again $(seconds_since "$began") after the node was killed"
speak

chat "$work/last"
docker stop -t 40 "$server" >/dev/null
[ "$(docker inspect -f '{{.State.ExitCode}}' "$server")" = 0 ] || fail "the server exited with an error"
until [ -e "$work/last.done" ]; do sleep 0.05; done
[ "$(tail -n 2 "$work/last" | head -n 1)" = "data: [DONE]" ] ||
    fail "the last stream has no end: $(tail -c 400 "$work/last") $(cat "$work/last.err")"
began=$(date +%s%N)
until [ "$(num_workers "${nodes[1]}")" = 0 ]; do
    [ $(($(date +%s%N) - began)) -lt 60000000000 ] || fail "workers still run 60 s after their server"
    sleep 0.2
done
echo "the stream finished before the server stopped; all workers had ended $(seconds_since "$began") later"
echo "image-test-ray: passed"
