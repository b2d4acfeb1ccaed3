package tools

import (
	"fmt"
	"strings"
)

// Command is a program with arguments into which values of a call are put.
type Command struct {
	Program   string
	arguments [][]part
}

// ParseCommand reads a command as a team file has it: a program, which is as written, and templates of arguments.
func ParseCommand(argv []string) (*Command, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errNoProgram
	}
	c := &Command{Program: argv[0]}
	for i, text := range argv[1:] {
		parts, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		c.arguments = append(c.arguments, parts)
	}
	return c, nil
}

// Arguments puts the values of a call in. Each argument stays one, whatever is in them.
func (c *Command) Arguments(input map[string]any) ([]string, error) {
	args := make([]string, len(c.arguments))
	for i, parts := range c.arguments {
		for _, p := range parts {
			text := p.text
			if p.name != "" {
				var err error
				if text, err = value(input, p.name); err != nil {
					return nil, err
				}
			}
			if strings.ContainsRune(text, 0) {
				return nil, fmt.Errorf("argument %d would hold a zero byte, which no argument can", i+1)
			}
			args[i] += text
		}
	}
	return args, nil
}
