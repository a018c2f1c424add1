// HTTP requests to the server, with the API key, and responses that are event streams.

export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const keyField = document.getElementById("key");

function headers() {
  return keyField.value ? { Authorization: `Bearer ${keyField.value}` } : {};
}

async function checked(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new ServerError(body?.error?.message ?? response.statusText, response.status);
}

export async function get(path) {
  return (await checked(await fetch(path, { headers: headers() }))).json();
}

/** The JSON events of a POST. Throws ServerError for an error status and for an error event. */
export async function* events(path, body, id, signal) {
  const response = await fetch(path, {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json", "X-Request-Id": id },
    body: JSON.stringify(body),
    signal,
  });
  await checked(response);
  let unread = "";
  for await (const text of chunks(response.body.pipeThrough(new TextDecoderStream()))) {
    const frames = (unread + text).split("\n\n");
    unread = frames.pop();
    for (const frame of frames) {
      if (!frame.startsWith("data: ")) continue; // a ping
      if (frame === "data: [DONE]") return;
      const event = JSON.parse(frame.slice(6));
      if (event.error) throw new ServerError(event.error.message, response.status);
      yield event;
    }
  }
  throw new ServerError("The connection closed before the response was complete.", response.status);
}

/** Iterates over a stream, for browsers without an iterator of their own. */
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

/** A request id, so that the timeline can be fetched before the response starts. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return "play_" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
