// What programs do with the AI SDK, against the endpoint that OPENAI_BASE_URL names.
import assert from "node:assert/strict";

const packages = process.argv[2];
const { generateText, streamText, stepCountIs, tool, Output } = await import(`${packages}/ai/dist/index.js`);
const { createOpenAICompatible } = await import(`${packages}/@ai-sdk/openai-compatible/dist/index.js`);
const { z } = await import(`${packages}/zod/index.js`);
const provider = createOpenAICompatible({
  name: "parley",
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = provider("parley");

const plain = await generateText({ model: provider("other"), prompt: "hello", maxRetries: 0 });
assert.equal(plain.text, "m2 heard hello");
assert.ok(plain.usage.inputTokens > 0);

const asked = [];
const tools = {
  get_weather: tool({
    description: "Tells the weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => { asked.push(city); return "sunny in " + city; },
  }),
};
const whole = await generateText({ model, prompt: "weather", tools, stopWhen: stepCountIs(3), maxRetries: 0 });
assert.match(whole.text, /^They say: .*sunny in Rome/);
const streamed = streamText({ model, prompt: "weather", tools, stopWhen: stepCountIs(3), maxRetries: 0 });
assert.match(await streamed.text, /^They say: .*sunny in Rome/);
assert.ok((await streamed.totalUsage).inputTokens > 0);
assert.deepEqual(asked, ["Rome", "Rome"]);

const formed = await generateText({
  model, prompt: "JSON", output: Output.object({ schema: z.object({ city: z.string() }) }), maxRetries: 0,
});
assert.deepEqual(formed.output, { city: "Rome" });
console.log("all is well");
