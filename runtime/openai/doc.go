// Package openai talks to servers with an OpenAI-compatible chat completions endpoint: OpenAI itself, Ollama, vLLM,
// llama.cpp, gateways. Start at [New]; a [Model] is a runtime.Model.
//
// It makes no retries, follows no redirects, uses no proxy and reads no environment variable. The SDK addresses,
// authenticates and sends requests and splits event streams. Their bodies are written here, since a conversation is sent
// again at every turn and has to be written fast. Answers are decoded here, because the SDK turns what it cannot read
// into zero values, and an answer that cannot be read must be an error.
//
// # What counts as complete
//
// An answer is complete when the server gave a finish reason. Where it gave none, the end mark ([DONE], or the end of a
// whole JSON answer) stands in for one, provided there is an answer and every tool call's arguments are whole; anything
// else is a retryable INCOMPLETE error. A reason this package does not know is an error too: it might mean "cut".
//
// Tool calls count whatever the finish reason says, except that [spec.FinishLength] marks an answer that was cut, and
// its calls must not run. The older function_call form is refused.
//
// # What is sent
//
// Output limits go out as max_completion_tokens to api.openai.com, whose newer models refuse the older name, and as
// max_tokens to everybody else, because most compatible servers know only that. Streamed requests ask for usage with
// stream_options; a server that refuses the option is asked again without it, once, and not asked for it after that.
package openai
