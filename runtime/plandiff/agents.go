package plandiff

import (
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

func agent() *part {
	return &part{of: map[string]*part{
		"name":         changed(""),
		"description":  changed("the description is another text"),
		"provider":     always(Widened, "another provider is asked, and sees all that the agent does"),
		"model":        changed("another model works", "model", "agents"),
		"systemPrompt": changed("the prompt is another text"),
		"capabilities": {each: changed(""), added: changes("is a further capability, by which tasks may be given to it"), removed: changes("is no longer a capability")},
		"tools":        {each: grant(), by: []string{"name"}, added: toolNew, removed: toolGone, reads: []string{"tools", "agents"}},
		"removed":      {each: &part{of: map[string]*part{"name": changed(""), "removedBy": changed("is taken away by another step")}}, by: []string{"name"}, added: changes("is taken away"), removed: changes("is no longer taken away: it was not given, or it is now")},
		"credentials":  {each: always(Widened, "the credential comes from elsewhere"), added: widens("is a new credential"), removed: narrows("is no longer a credential")},
		"backend":      backend(),

		"shellExecutor": executor(),
		"cwd":           always(Widened, "it works in another folder, and rules see paths from there"),
		"containment":   containment(),

		"outputSchema":        condition("the schema of the answer"),
		"maxTurns":            ceiling("the turns of a task", ""),
		"maxTokenBudget":      ceiling("the agent's token budget", "", "budget"),
		"maxOutputTokens":     ceiling("the length of an answer", ""),
		"temperature":         changed("the temperature is another one"),
		"timeout":             ceiling("the time for a task", ""),
		"callTimeout":         ceiling("the time for a model call", ""),
		"maxToolOutputChars":  ceiling("the length of a tool's result", ""),
		"maxToolInputBytes":   ceiling("the size of a tool's input", ""),
		"maxToolConcurrency":  ceiling("how many tools run at once", ""),
		"contextStrategy":     {of: map[string]*part{"type": changed("its conversation is shortened in another way"), "maxTurns": changed("its conversation is shortened elsewhere"), "maxTokens": changed("its conversation is shortened elsewhere")}, added: changes("its conversation is shortened"), removed: changes("its conversation is no longer shortened")},
		"loopDetection":       {of: map[string]*part{"maxRepetitions": ceiling("how often the same may be said", "3"), "action": ladder("what becomes of a loop", spec.LoopWarn, spec.LoopWarn, spec.LoopTerminate)}, added: narrows("an agent that goes round in a circle is ended"), removed: widens("an agent that goes round in a circle goes on")},
		"compressToolResults": changed("older results are shortened in another way"),
		"unmetered":           ladder("what happens when a provider reports no usage", "refuse", "allow", "refuse"),
	}}
}

// agentNew names what a further agent has.
func agentNew(_ *walk, e any) verdict {
	o, _ := e.(object)
	list, _ := o["tools"].([]any)
	var has []string
	for _, t := range list {
		has = append(has, member(t, "name"))
	}
	words := "is a further agent, without tools"
	if has != nil {
		words = "is a further agent, with " + strings.Join(has, ", ")
	}
	if command := member(o["backend"], "command"); command != "" {
		words += ", and is the program " + command
	}
	return verdict{Widened, words}
}

func containment() *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		switch {
		case a == nil && b == any("none"):
			return verdict{Widened, "the file tools are not kept in the agent's folder any more"}
		case a == any("none") && b == nil:
			return verdict{Narrowed, "the file tools are kept in the agent's folder"}
		}
		return unknown
	}}
}

func toolNew(_ *walk, e any) verdict {
	return verdict{Widened, "may be used (" + member(e, "grantedBy") + ")"}
}

func toolGone(_ *walk, _ any) verdict { return verdict{Narrowed, "may no longer be used"} }

// grant is a tool as an agent has it. What it declares of its effects decides which rules and checks it meets, in either
// direction.
func grant() *part {
	of := toolText()
	of["grantedBy"] = changed("another step grants it")
	of["readOnly"] = always(Widened, "says something else of whether it changes anything")
	return &part{of: of}
}

func toolText() map[string]*part {
	return map[string]*part{
		"name":           changed(""),
		"description":    changed("the description is another text"),
		"inputSchema":    always(Widened, "takes other input"),
		"outputSchema":   condition("the schema of the result"),
		"consequential":  always(Widened, "says something else of effects outside the run"),
		"idempotent":     licence("a call that may have been made is made again without asking", "a call that may have been made is not made again without asking", false),
		"maxOutputChars": ceiling("the length of a result", ""),
	}
}

func customTool() *part {
	of := toolText()
	delete(of, "name")
	of["command"] = always(Widened, "starts another command")
	of["http"] = always(Widened, "makes another request")
	of["output"] = always(Widened, "its answer is read in another way")
	of["credentials"] = permits("is given a further credential", "is no longer given the credential")
	of["timeout"] = ceiling("the time for a call", "2m")
	of["passUndeclared"] = licence("undeclared input is handed on", "undeclared input is dropped", false)
	return &part{of: of}
}

func mcpServer() *part {
	return &part{of: map[string]*part{
		"command":        always(Widened, "starts another program"),
		"args":           always(Widened, "is started with other arguments"),
		"env":            always(Widened, "is given other variables"),
		"cwd":            always(Widened, "works in another folder"),
		"url":            always(Widened, "is asked at another address"),
		"headers":        always(Widened, "is sent other headers"),
		"namePrefix":     always(Widened, "its tools have other names, and rules know tools by name"),
		"consequential":  always(Widened, "other tools of it count as consequential"),
		"readOnly":       always(Widened, "other tools of it count as read-only"),
		"requestTimeout": ceiling("the time for a request", "60s"),
		"tools":          {each: serverTool(), by: []string{"as"}, added: widens("is a further tool of the server"), removed: narrows("is no longer a tool of the server")},
	}}
}

func serverTool() *part {
	return &part{of: map[string]*part{
		"as":           changed(""),
		"name":         always(Widened, "is another tool of the server"),
		"description":  changed("the server describes it with another text"),
		"inputSchema":  always(Widened, "takes other input"),
		"outputSchema": condition("the schema of the result"),
		"annotations":  changed("the server hints at other effects; hints decide nothing"),
	}}
}

func backend() *part {
	return &part{of: map[string]*part{
		"kind":          always(Widened, "it is an external agent of another kind"),
		"command":       always(Widened, "it starts another program"),
		"args":          always(Widened, "it is started with other arguments"),
		"env":           always(Widened, "it is given other variables"),
		"cwd":           always(Widened, "it works in another folder"),
		"input":         always(Widened, "it gets its prompt in another way"),
		"permission":    ladder("what it asks for", spec.PermissionGates, spec.PermissionApprove, spec.PermissionGates, spec.PermissionReject),
		"consequential": always(Widened, "it says something else of effects outside the run"),
		"timeout":       ceiling("the time for a prompt", ""),
		"capabilities":  permits("it is offered this", "it is no longer offered this"),
	}, added: widens("a program works in place of a model"), removed: narrows("a model works in place of a program"), reads: []string{"backend", "agents"}}
}

// executor is where bash runs. Without one it runs as any program of the user.
func executor() *part {
	return &part{of: map[string]*part{
		"kind":     {judge: sandbox},
		"image":    always(Widened, "bash runs in another image"),
		"write":    permits("bash may write here", "bash may no longer write here"),
		"network":  licence("bash may open connections", "bash opens no connections", true),
		"required": control("it does not run where its walls do not hold", "it runs where its walls do not hold", true),
	}}
}

// sandbox compares walls: any keeps in more than none, and two kinds are not compared.
func sandbox(_ *walk, a, b any) verdict {
	local := func(v any) bool { return v == nil || v == any("local") }
	switch {
	case local(a) && local(b):
		return verdict{Changed, "bash runs without walls as before"}
	case local(b):
		return verdict{Widened, "bash runs without walls"}
	case local(a) && (b == any("landlock") || b == any("bubblewrap") || b == any("container")):
		return verdict{Narrowed, "bash runs within walls"}
	}
	return verdict{Widened, "bash runs within other walls"}
}
