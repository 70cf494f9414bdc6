package main

import (
	"cmp"
	"path/filepath"

	"parley/config"
	"parley/web/configpages"
)

// configPages is the page on which owners edit the config.
func (o ownerAPI) configPages() *configpages.Pages {
	c := o.app.Config
	return &configpages.Pages{
		File: &configpages.File{
			Path: c.File, History: filepath.Join(c.DataDir, "config-history"), Secrets: o.configSecrets,
		},
		First: string(firstConfig),
		Check: o.checkConfig,
		Zone:  c.Zone(),
		Audit: o.app.auditLog.Add,
	}
}

// checkConfig says what is wrong with a text of the config, as a start would, or what it would change.
func (o ownerAPI) checkConfig(text string) (v configpages.Verdict) {
	next, err := config.Parse(o.app.Config.Source, []byte(text))
	_, refused := next.Rules()
	if err = cmp.Or(err, refused, next.CheckOwners()); err != nil {
		v.Faults = configpages.FaultsOf(o.app.Config.File, err)
		return v
	}
	v.Warnings = append(next.Removed, next.Warnings()...)
	v.Changed, v.Restart = config.Renew(o.app.now.Load(), next)
	return v
}

// configSecrets returns where secrets stand in a text of the config.
func (o ownerAPI) configSecrets(text string) (all []configpages.Secret) {
	for _, l := range config.Literals(o.app.Config.Source, []byte(text), o.app.now.Load().Secrets) {
		all = append(all, configpages.Secret(l))
	}
	return all
}
