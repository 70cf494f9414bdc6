package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"parley/admin"
	"parley/channels/console"
	"parley/channels/network"
	"parley/cmd/gateway/mcpservers"
	"parley/cmd/gateway/sandboxes"
	"parley/cmd/gateway/stores"
	"parley/config"
	"parley/doctor"
	"parley/host"
	"parley/store/bolt/dirlock"
	"parley/store/mem"
	"parley/tools/custom"
	"parley/tools/python"
	"parley/web"
)

// doctor prints what is wrong and what helps, and fails if Parley cannot work.
func (p *program) doctor(ctx context.Context) error {
	print := func(name string, f doctor.Finding) {
		f.Text = p.redact.String(f.Text)
		f.Advice = p.redact.String(f.Advice)
		doctor.Print(p.stdout, name, f)
	}
	c, err := p.load()
	if err != nil {
		advice := cmp.Or(host.AccessAdvice(err), c.Advice())
		print("config", doctor.Finding{Status: doctor.Fail, Text: err.Error(), Advice: advice})
		return exit{code: exitUsage}
	}
	status := func(ctx context.Context) (web.Overview, error) { return statusOf(ctx, c) }
	running := doctor.Gateway{PID: doctor.GatewayPID(ctx, console.Socket(c.DataDir), c.DataDir), Status: status}
	running.Answers = dirlock.StandsBy(c.DataDir)
	if !doctor.Run(ctx, checks(c, running), print) {
		return exit{code: exitFailure}
	}
	return nil
}

// statusOf asks the gateway that runs with the data of c for its status.
func statusOf(ctx context.Context, c *config.Config) (o web.Overview, err error) {
	client := admin.NewClient(admin.Socket(c.DataDir))
	o, err = client.Status(ctx)
	return o, errors.Join(err, client.Close())
}

// clientOf returns what makes clients of the gateway that runs, nil if none does.
func clientOf(c *config.Config, running doctor.Gateway) func() *admin.Client {
	if !running.Runs() {
		return nil
	}
	return func() *admin.Client { return admin.NewClient(admin.Socket(c.DataDir)) }
}

// checks lists what the doctor looks at, while running may use the data of c.
func checks(c *config.Config, running doctor.Gateway) (all []doctor.Check) {
	add := func(name string, run func(context.Context) doctor.Finding) {
		all = append(all, doctor.Check{Name: name, Run: run})
	}
	add("config", func(context.Context) doctor.Finding {
		return doctor.ConfigFile(c.File, c.Found, c.Warnings())
	})
	add("data", func(context.Context) doctor.Finding { return doctor.Folder(c.DataDir, c.Workspace) })
	add("workspace", func(context.Context) doctor.Finding {
		if !stores.IsFile(c.Store.Driver) {
			return doctor.Folder(c.Workspace, "")
		}
		return doctor.Workspace(c.Workspace, c.DataDir, c.Command("run", "--begin-anew"))
	})
	add("gateway", running.Check)
	restore := func(file string) string { return c.Command("restore", file) }
	file := doctor.Store{Type: c.Store.Type, DataDir: c.DataDir, Restore: restore}
	add("store", func(ctx context.Context) doctor.Finding { return stores.Check(ctx, c.Store.Driver, file, running) })
	add("sandbox", func(ctx context.Context) doctor.Finding {
		return sandboxes.Check(ctx, c.Tools.Exec.Sandbox, c.Tools.Exec.Image, c.DataDir)
	})
	if c.Tools.Custom.Enable || len(c.Tools.Override) > 0 {
		add("custom tools", func(context.Context) doctor.Finding { return checkCustomTools(c) })
	}
	add("python", func(context.Context) doctor.Finding { return doctor.Python(python.Find()) })
	all = append(all, mcpservers.Checks(c.Tools.MCPServers, clientOf(c, running))...)
	for _, name := range append([]string{c.Agent.Model}, c.Agent.Fallback...) {
		add("model "+name, func(ctx context.Context) doctor.Finding { return checkModel(ctx, name, c.Models[name]) })
	}
	if t := c.Transcription; t != nil {
		add("transcription", func(ctx context.Context) doctor.Finding {
			return doctor.Transcription(ctx, t.Model, transcriber(c))
		})
	}
	for _, name := range c.Networks() {
		settings := c.Channels[name]
		channel, err := settings.Driver.(network.Driver).Build(network.NewHost(name, mem.New()))
		add(name, func(ctx context.Context) doctor.Finding {
			return doctor.Channel(ctx, name, channel, err, len(settings.Senders.Allow))
		})
		if err != nil {
			continue
		}
		if listen := network.WebhookAddress(settings.Driver); listen != "" {
			add(name+" port", func(ctx context.Context) doctor.Finding { return running.Port(ctx, listen) })
		}
	}
	if addr := c.HTTP.Listen; addr == config.DefaultListen && c.HTTP.PublicURL == "" {
		add("web port", func(ctx context.Context) doctor.Finding { return running.DefaultPort(ctx, addr) })
	} else if addr != "" {
		add("web port", func(ctx context.Context) doctor.Finding { return running.Port(ctx, addr) })
	}
	return all
}

func checkCustomTools(c *config.Config) doctor.Finding {
	var names, replaced []string
	for _, t := range builtInTools() {
		names = append(names, t.Name)
	}
	all, err := custom.Examine(filepath.Join(c.DataDir, custom.Folder), names)
	if !c.Tools.Custom.Enable {
		all = custom.Listing{}
	}
	for _, name := range custom.Missing(overridesOf(c), all.Usable()) {
		replaced = append(replaced, name+", because the custom tool "+c.Tools.Override[name].Tool+" cannot be used")
	}
	return doctor.CustomTools(len(all.Tools), all.FaultTexts(), replaced, err)
}

func checkModel(ctx context.Context, name string, m *config.Model) doctor.Finding {
	if m.Type == "demo" {
		return doctor.DemoModel()
	}
	return doctor.Model(ctx, name, m.Model, newModel(name, m))
}
