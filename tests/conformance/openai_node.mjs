// The official client for Node, version 6, the newest that runs on Node 20.
//
//     node openai_node.mjs URL FAULTY_URL KEY
//
// Writes one line of JSON for each check, as checks.py does.

import assert from "node:assert/strict";

import OpenAI from "openai";

const [url, faultyUrl, apiKey] = process.argv.slice(2);
const clientOf = (base, key = apiKey) =>
  new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 30000 });
const client = clientOf(url);

const input = "One two three four five.";
const pcmBytes = 2 * 480 * input.replaceAll(" ", "").length;
const speech = { model: "tts-1", voice: "alloy", input };
const messages = [{ role: "user", content: "hello big world" }];
const reply = "You said: hello big world";
const spoken = { model: "gpt-audio", messages, modalities: ["text", "audio"] };
const audio = { voice: "alloy", format: "pcm16" };
const formats = {
  mp3: ["audio/mpeg", [0xff, 0xf3]],
  opus: ["audio/opus", [...Buffer.from("OggS")]],
  aac: ["audio/aac", [0xff, 0xf1]],
  flac: ["audio/flac", [...Buffer.from("fLaC")]],
  wav: ["audio/wav", [...Buffer.from("RIFF"), 0xff, 0xff, 0xff, 0xff]],
  pcm: ["audio/pcm", []],
};

const bytesOf = async (response) => Buffer.from(await response.arrayBuffer());

const checks = {
  async "models are listed and each can be retrieved"() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    assert(names.includes("tts-1"));
    for (const name of names) assert.equal((await client.models.retrieve(name)).id, name);
  },
  async "an unknown model is not found"() {
    await assert.rejects(client.models.retrieve("org/no such model"), (error) => {
      assert(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, "model_not_found");
      assert.match(error.requestID, /^req_/);
      return true;
    });
  },
  async "a wrong key is refused"() {
    await assert.rejects(clientOf(url, "sk-wrong").models.list(), { code: "invalid_api_key" });
  },
  async "speech in each format"() {
    for (const [name, [type, magic]] of Object.entries(formats)) {
      const response = await client.audio.speech.create({ ...speech, response_format: name });
      assert.equal(response.headers.get("content-type"), type);
      const bytes = await bytesOf(response);
      assert.deepEqual([...bytes.subarray(0, magic.length)], magic);
      if (name === "pcm") assert.equal(bytes.length, pcmBytes);
    }
  },
  async "speech is mp3 by default"() {
    const response = await client.audio.speech.create(speech);
    assert.equal(response.headers.get("content-type"), "audio/mpeg");
    await bytesOf(response);
  },
  async "events of speech have the same bytes"() {
    for (const name of Object.keys(formats)) {
      const whole = await client.audio.speech.create({ ...speech, response_format: name });
      const response = await client.audio.speech.create({
        ...speech,
        response_format: name,
        stream_format: "sse",
      });
      const events = (await response.text()).split("\n\n").filter(Boolean);
      assert.equal(events.at(-1), "data: [DONE]");
      const usage = JSON.parse(events.at(-2).slice(6)).usage;
      assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
      const pieces = events
        .slice(0, -2)
        .map((event) => Buffer.from(JSON.parse(event.slice(6)).audio, "base64"));
      assert(Buffer.concat(pieces).equals(await bytesOf(whole)));
    }
  },
  async "a refusal names the field"() {
    const wrong = { voice: "no_such_voice", input: "", speed: 9, response_format: "midi" };
    for (const [param, value] of Object.entries(wrong)) {
      await assert.rejects(client.audio.speech.create({ ...speech, [param]: value }), (error) => {
        assert(error instanceof OpenAI.BadRequestError);
        assert.equal(error.param, param);
        return true;
      });
    }
  },
  async "a whole and a streamed chat are the same"() {
    const whole = await client.chat.completions.create({ model: "fake-chat", messages });
    assert.equal(whole.choices[0].message.content, reply);
    const stream = client.chat.completions.stream({ model: "fake-chat", messages });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].message.content, reply);
    assert.equal(final.choices[0].finish_reason, "stop");
  },
  async "a spoken chat in each format"() {
    for (const name of ["wav", "aac", "mp3", "flac", "opus", "pcm16"]) {
      const whole = await client.chat.completions.create({
        ...spoken,
        audio: { ...audio, format: name },
      });
      const magic = (formats[name] ?? formats.pcm)[1].slice(0, 4);
      const file = Buffer.from(whole.choices[0].message.audio.data, "base64");
      assert.deepEqual([...file.subarray(0, magic.length)], magic);
    }
  },
  async "the client accumulates a spoken chat"() {
    const whole = await client.chat.completions.create({ ...spoken, audio });
    const stream = client.chat.completions.stream({
      ...spoken,
      audio,
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    const message = final.choices[0].message;
    assert.equal(message.audio.transcript, reply);
    assert.equal(message.audio.data, whole.choices[0].message.audio.data);
    assert.equal(final.choices[0].finish_reason, "stop");
    assert.deepEqual(final.usage, whole.usage);
  },
  async "a whole and a streamed response are the same"() {
    const body = { model: "fake-chat", input: "hello big world" };
    const whole = await client.responses.create(body);
    assert.equal(whole.output_text, reply);
    const final = await client.responses.stream(body).finalResponse();
    assert.equal(final.output_text, reply);
  },
  async "a failure in a chat stream is an error"() {
    const stream = await clientOf(faultyUrl).chat.completions.create({
      model: "chatter",
      messages,
      stream: true,
    });
    await assert.rejects(
      async () => {
        for await (const _ of stream);
      },
      { code: "generation_failed" },
    );
  },
  async "a failure in an audio file breaks the connection"() {
    const body = { ...speech, model: "speaker", voice: "low" };
    const response = await clientOf(faultyUrl).audio.speech.create(body);
    await assert.rejects(bytesOf(response));
  },
};

for (const [check, run] of Object.entries(checks)) {
  let why = "";
  try {
    await run();
  } catch (error) {
    why = `${error.name}: ${error.message}`;
  }
  console.log(JSON.stringify({ check, ok: why === "", why }));
}
