package imports

import (
	"cmp"
	"strings"
)

// endpoint returns the address at which a provider speaks as OpenAI does, by the name that the
// other systems have for it.
func endpoint(provider string) (address string, known bool) {
	address, known = map[string]string{
		"openai": "https://api.openai.com/v1", "openrouter": "https://openrouter.ai/api/v1",
		"anthropic": "https://api.anthropic.com/v1", "groq": "https://api.groq.com/openai/v1",
		"gemini":   "https://generativelanguage.googleapis.com/v1beta/openai",
		"google":   "https://generativelanguage.googleapis.com/v1beta/openai",
		"deepseek": "https://api.deepseek.com/v1", "mistral": "https://api.mistral.ai/v1",
		"together": "https://api.together.xyz/v1", "xai": "https://api.x.ai/v1",
		"moonshot": "https://api.moonshot.ai/v1", "minimax": "https://api.minimax.io/v1",
		"zhipu": "https://open.bigmodel.cn/api/paas/v4", "zai": "https://api.z.ai/api/paas/v4",
		"dashscope":  "https://dashscope.aliyuncs.com/compatible-mode/v1",
		"qwen":       "https://dashscope.aliyuncs.com/compatible-mode/v1",
		"volcengine": "https://ark.cn-beijing.volces.com/api/v3", "nvidia": "https://integrate.api.nvidia.com/v1",
		"siliconflow": "https://api.siliconflow.cn/v1", "aihubmix": "https://aihubmix.com/v1",
		"cerebras": "https://api.cerebras.ai/v1", "ollama": "http://127.0.0.1:11434/v1",
		"vllm": "http://127.0.0.1:8000/v1", "lmstudio": "http://127.0.0.1:1234/v1",
	}[provider]
	return address, known
}

// needsKey reports whether a provider answers nobody without a key.
func needsKey(provider string) bool {
	return provider != "ollama" && provider != "vllm" && provider != "lmstudio" && provider != "custom"
}

// A found model is one as it was in the other config.
type foundModel struct {
	provider, id  string // such as "openrouter", "qwen/qwen3"
	base          value  // its address; without one, that of the provider
	key           value
	keyFrom       string
	window, limit int64 // tokens; 0: not known
	in, out       float64
	api           string // the protocol, if the config names one
	from          string
}

// addModel takes over a model as name, and returns the name, "" if it is left.
func (s *Settings) addModel(name string, m foundModel) string {
	name = cmp.Or(name, plainName(m.provider+" "+m.id), "model")
	item := Item{Action: Taken, What: "model " + line(m.provider+"/"+m.id), From: m.from, To: "models." + name}
	leave := func(why string) string {
		s.note(Item{Action: Left, What: item.What, From: m.from, Why: why})
		return ""
	}
	address := s.address(m.base, m.provider+"_base_url", m.from)
	known, ok := endpoint(m.provider)
	switch {
	case m.id == "":
		return leave("it has no name at its provider")
	case s.Models[name] != nil:
		return name
	case address == "" && !ok:
		return leave("Parley does not know the address of " + line(m.provider) + "; add it to models")
	case strings.Contains(m.api, "anthropic") && m.provider != "anthropic", strings.Contains(m.api, "google"),
		strings.Contains(m.api, "bedrock"):
		return leave("Parley speaks OpenAI's protocol, and this address another; add one that does to models")
	}
	address = cmp.Or(address, known)
	if m.provider == "anthropic" {
		address = known
		item.Action = Changed
		item.Why = "through Anthropic's address for clients of OpenAI"
	}
	key := s.secret(m.key, m.provider+"_api_key", m.keyFrom)
	if key == "" && m.base.text() == "" && needsKey(m.provider) {
		const from = "the environment, or a sign-in: there is no key in the config"
		variable := strings.ToUpper(strings.ReplaceAll(plainName(m.provider), "-", "_")) + "_API_KEY"
		key = s.secret(value{"${" + variable + "}"}, "", from)
	}
	if m.window < 1000 {
		m.window = 0
	}
	if m.limit >= cmp.Or(m.window, 128_000) {
		m.limit = 0
	}
	to := &Model{Type: "openai", BaseURL: address, APIKey: key, Model: plain(m.id), ContextWindow: m.window}
	to.MaxTokens = max(m.limit, 0)
	if m.in > 0 || m.out > 0 {
		to.Price = &prices{max(m.in, 0), max(m.out, 0)}
	}
	s.Models[name] = to
	s.note(item)
	return name
}

// setModels makes the first name the model to ask, and the others those that are asked when it fails.
func (s *Settings) setModels(names []string) {
	seen := map[string]bool{"": true}
	for _, name := range names {
		switch {
		case seen[name]:
		case s.Model == "":
			s.Model = name
		default:
			s.Fallback = append(s.Fallback, name)
		}
		seen[name] = true
	}
}
