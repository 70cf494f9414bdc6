// What programs do with OpenAI's own client, against the endpoint that OPENAI_BASE_URL names.
import assert from "node:assert/strict";

const packages = process.argv[2];
const { OpenAI } = await import(`${packages}/openai/index.mjs`);
const client = new OpenAI({ maxRetries: 0 });
const said = (content) => [{ role: "user", content }];
const get_weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Tells the weather in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.deepEqual(names, ["parley", "main", "other"]);
assert.equal((await client.models.retrieve("other")).id, "other");
await assert.rejects(client.models.retrieve("none"), { status: 404, code: "model_not_found" });

const plain = await client.chat.completions.create({ model: "other", messages: said("hello") });
assert.equal(plain.choices[0].message.content, "m2 heard hello");
assert.ok(plain.usage.prompt_tokens > 0 && plain.usage.completion_tokens > 0);

const cut = await client.chat.completions.create({ model: "parley", messages: said("count"), max_completion_tokens: 2 });
assert.equal(cut.choices[0].message.content, "one, t");
assert.equal(cut.choices[0].finish_reason, "length");

const stopped = await client.chat.completions.create({ model: "parley", messages: said("hello, you"), stop: ", " });
assert.equal(stopped.choices[0].message.content, "m1 heard hello");

const form = { type: "json_schema", json_schema: { name: "place", strict: true, schema: { type: "object" } } };
const formatted = await client.chat.completions.parse({ model: "parley", messages: said("JSON"), response_format: form });
assert.deepEqual(formatted.choices[0].message.parsed ?? JSON.parse(formatted.choices[0].message.content), { city: "Rome" });

for (const stream of [false, true]) {
  const asked = [];
  const runner = client.chat.completions.runTools({
    model: "parley",
    stream,
    messages: said("weather"),
    tools: [{
      ...get_weather,
      function: { ...get_weather.function, parse: JSON.parse, function: ({ city }) => { asked.push(city); return "sunny in " + city; } },
    }],
  });
  assert.equal(await runner.finalContent(), "They say: sunny in Rome");
  assert.deepEqual(asked, ["Rome"]);
}

await assert.rejects(
  client.chat.completions.create({ model: "parley", messages: said("hello"), logprobs: true }),
  { status: 400, code: "unsupported_parameter", param: "logprobs", type: "invalid_request_error" },
);
await assert.rejects(client.chat.completions.create({ model: "none", messages: said("hello") }), { status: 404, code: "model_not_found" });
await assert.rejects(
  new OpenAI({ apiKey: "wrong", maxRetries: 0 }).models.list(),
  (e) => e.status === 401 && e.code === "invalid_api_key",
);
console.log("all is well");
