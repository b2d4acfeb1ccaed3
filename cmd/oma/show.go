package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/policies/library"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) policyShowCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show [PACK|FILE]...",
		Short: "List the packs that the program carries, or print one as it is",
		Long: "Show lists the packs that gates.packs can name. Of a pack, or a policy file, it prints the text as it is; -o json and\n" +
			"yaml print the document as it was read.",
		RunE: func(_ *cobra.Command, args []string) error { return a.policyShow(args, output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// packLine is one pack in the list.
type packLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Rules       int    `json:"rules"`
	Digest      string `json:"digest"`
}

func (a *app) policyShow(names []string, output string) error {
	if len(names) == 0 {
		return a.listPacks(output)
	}
	var shown []spec.PolicyFile
	for _, name := range names {
		p, err := a.policyFile(name)
		if err != nil {
			return err
		}
		shown = append(shown, *p)
	}
	var doc any = shown[0].Policy
	if len(shown) > 1 {
		var all []*spec.Policy
		for _, p := range shown {
			all = append(all, p.Policy)
		}
		doc = all
	}
	return a.print(output, doc, func(w io.Writer) {
		for i, p := range shown {
			if i > 0 {
				fmt.Fprintln(w, "---")
			}
			fmt.Fprintln(w, escape(strings.TrimRight(p.Text, "\n")))
		}
	})
}

func (a *app) listPacks(output string) error {
	list := []packLine{}
	for _, name := range library.Names() {
		p, ds, _ := loader.Pack(name)
		if err := a.problems(ds, false); err != nil {
			return err
		}
		list = append(list, packLine{name, p.Policy.Description, len(p.Policy.Rules), p.Digest})
	}
	return a.print(output, list, func(w io.Writer) {
		for _, p := range list {
			fmt.Fprintf(w, "%-20s %s\n", p.Name, p.Description)
		}
	})
}

// policyFile gives a pack, or a policy that is a file.
func (a *app) policyFile(name string) (*spec.PolicyFile, error) {
	if p, ds, ok := loader.Pack(name); ok {
		return &p, a.problems(ds, false)
	}
	packs := library.Names()
	if !exists(name) && !strings.ContainsAny(name, "./\\") {
		return nil, usage("there is no pack %q: %s", name, spec.DidYouMean(name, packs))
	}
	l, ds := loader.Any(name)
	if err := a.problems(ds, false); err != nil {
		return nil, err
	}
	if l.Policy == nil {
		return nil, usage("%s is a %s, and neither a pack nor a policy", name, l.Kind)
	}
	return l.Policy, nil
}
