package config

import (
	"parley/tools/network"
	"parley/tools/web"
)

// Lookups returns the config of the tools that look things up.
func (w WebTools) Lookups() (web.Config, error) {
	cfg := web.Config{Demo: w.Demo}
	for _, s := range append([]Search{w.Search}, w.SearchFallback...) {
		cfg.Search = append(cfg.Search, web.Provider{Name: s.Provider, Key: string(s.APIKey), BaseURL: s.BaseURL})
	}
	for _, text := range w.AllowPrivate {
		prefix, err := network.ParseNetwork(text)
		if err != nil {
			return cfg, err
		}
		cfg.AllowPrivate = append(cfg.AllowPrivate, prefix)
	}
	return cfg, nil
}
