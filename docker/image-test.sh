#!/usr/bin/env bash
# Runs an image with few rights (a random user, a read-only root, no capabilities, no outside network)
# and tests it with curl. Prints the image's size and how long it takes to start.
#
#   docker/image-test.sh IMAGE
set -euo pipefail

image=$1
name=nano-omni-test-$$
work=$(mktemp -d)
user=$(shuf -i 20000-60000 -n 1)
locked=(--read-only --cap-drop ALL --security-opt no-new-privileges --user "$user:$user" --network "$name")

cleanup() {
    docker rm -fv "$name" >/dev/null 2>&1 || true
    docker volume rm "$name" >/dev/null 2>&1 || true
    docker network rm "$name" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "image-test: $*" >&2
    docker logs "$name" 2>&1 | tail -20 >&2 || true
    exit 1
}

# start LABEL OPTION...: run the image with these options, and print how long it took to get ready.
start() {
    local what=$1 began
    shift
    began=$(date +%s%N)
    docker run -d --name "$name" "${locked[@]}" "$@" "$image" >"$work/id"
    url=http://$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$name"):8000
    for _ in $(seq 1200); do
        if curl -fs -o "$work/ready" "$url/health/ready"; then
            awk -v what="$what" -v ns=$(($(date +%s%N) - began)) 'BEGIN { printf "ready in %.1f s: %s\n", ns / 1e9, what }'
            return
        fi
        [ "$(docker inspect -f '{{.State.Running}}' "$name")" = true ] || break
        sleep 0.1
    done
    fail "$what: the server did not become ready"
}

stop() {
    docker stop -t 40 "$name" >/dev/null
    [ "$(docker inspect -f '{{.State.ExitCode}}' "$name")" = 0 ] || fail "the server exited with an error"
    docker rm -v "$name" >/dev/null
}

speak() {
    curl -fsS "$url/v1/audio/speech" -o "$work/speech.mp3" \
        -d '{"model": "tts-1", "voice": "alloy", "input": "Hello from a container."}'
    head -c 2 "$work/speech.mp3" | od -An -tx1 | grep -q '^ ff f' || fail "the speech is not an MP3 file"
    [ "$(stat -c %s "$work/speech.mp3")" -gt 5000 ] || fail "the speech is too short"
}

chat() {
    curl -fsSN "$url/v1/chat/completions" -d '{"model": "smollm2-joe", "stream": true, "seed": 1,
        "max_tokens": 200, "modalities": ["text", "audio"], "audio": {"voice": "joe", "format": "pcm16"},
        "messages": [{"role": "user", "content": "Tell me a long story about a lighthouse."}]}'
}

docker network create --internal "$name" >/dev/null
docker volume create "$name" >/dev/null
docker image inspect -f '{{.Size}} {{.Config.User}}' "$image" |
    awk '{ printf "image size %.0f MB, default user %s, tested as user '"$user"'\n", $1 / 1e6, $2 }'

start "an empty volume, converting the weights" -v "$name:/cache"
speak
curl -fsS "$url/v1/models" | grep -q smollm2-joe || fail "the models are not listed"
if docker exec "$name" touch /app/x 2>"$work/err"; then fail "the root file system is writable"; fi
for _ in $(seq 300); do
    health=$(docker inspect -f '{{.State.Health.Status}}' "$name")
    [ "$health" = healthy ] && break
    sleep 0.1
done
[ "$health" = healthy ] || fail "the health check reports $health"

# A stream that runs while the container is stopped must still finish normally.
chat >"$work/stream" 2>"$work/err" &
client=$!
until [ -s "$work/stream" ]; do sleep 0.05; done
began=$(date +%s%N)
stop &
stopping=$!
sleep 0.5
kill -0 "$client" 2>/dev/null || fail "the stream ended before the container was stopped"
if curl -fs -o "$work/ready" "$url/health/ready"; then fail "the stopping server accepts new connections"; fi
wait "$client" || fail "the stream was cut off: $(cat "$work/err")"
wait "$stopping"
[ "$(tail -n 2 "$work/stream" | head -n 1)" = "data: [DONE]" ] || fail "the stream did not end with [DONE]"
awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { printf "stopped after %.1f s; the stream had finished\n", ns / 1e9 }'

start "the same volume" -v "$name:/cache"
stop
start "no volume at all, stages in processes, 64 MB of shared memory" --shm-size 64m -e NANO_OMNI_EXECUTOR=process
speak
chat >"$work/stream"
stop
start "the cache in memory" --tmpfs /cache
speak
stop
echo "image-test: passed"
