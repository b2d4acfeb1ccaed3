package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/attest"
	"github.com/open-multi-agent/oma/spec"
)

// receiptFlags are what the commands over receipts share.
type receiptFlags struct {
	key, artifact, signature, out, events, output string
}

func (a *app) receiptCommand() *cobra.Command {
	var f receiptFlags
	cmd := &cobra.Command{Use: "receipt", Short: "Read, compare, sign and verify receipts", Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	show := &cobra.Command{Use: "show RECEIPT", Short: "Show what a receipt says", Args: argsExactly(1, "one receipt"),
		RunE: func(_ *cobra.Command, args []string) error { return a.receiptShow(args[0], &f) }}
	diff := &cobra.Command{Use: "diff A B", Short: "Say in what two receipts differ", Args: argsExactly(2, "two receipts"),
		Long: "Diff compares conclusions, roles, decisions, spending and plan. Ids, times and digests of the receipts themselves always\n" +
			"differ and are left out. Ends 0 if nothing differs, else 1.",
		RunE: func(_ *cobra.Command, args []string) error { return a.receiptDiff(args[0], args[1], &f) }}
	sign := &cobra.Command{Use: "sign RECEIPT", Short: "Sign a receipt, for a file or folder that goes with it", Args: argsExactly(1, "one receipt"),
		RunE: func(_ *cobra.Command, args []string) error { return a.receiptSign(args[0], &f) }}
	sign.Flags().StringVar(&f.key, "key", "", "the private key, Ed25519 or ECDSA P-256, PKCS #8 in PEM; - reads standard input")
	sign.Flags().StringVar(&f.out, "out", "", "where the signature goes (default: RECEIPT"+envelopeSuffix+")")
	verify := &cobra.Command{Use: "verify RECEIPT", Short: "Hold a receipt against its event log and its signature", Args: argsExactly(1, "one receipt"),
		RunE: func(_ *cobra.Command, args []string) error { return a.receiptVerify(args[0], &f) }}
	verify.Flags().StringVar(&f.key, "key", "", "the public key in PEM")
	verify.Flags().StringVar(&f.signature, "signature", "", "the signature (default: RECEIPT"+envelopeSuffix+")")
	verify.Flags().StringVar(&f.events, "events", "", "the run's event log (default: events.jsonl beside the receipt, if there is one)")
	for _, c := range []*cobra.Command{sign, verify} {
		c.Flags().StringVar(&f.artifact, "artifact", "", "the file or folder that is released")
	}
	for _, c := range []*cobra.Command{show, diff, verify} {
		c.Flags().StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	}
	cmd.AddCommand(show, diff, verify, sign)
	return cmd
}

// wholeReceipt reads a receipt that is as it was written, as far as its own digest tells.
func (a *app) wholeReceipt(path string) ([]byte, *spec.Receipt, error) {
	b, err := a.readInput(path)
	if err != nil {
		return nil, nil, usage("%s cannot be read: %v", path, cause(err))
	}
	r, err := runtime.ReadReceipt(b)
	if err != nil {
		return nil, nil, usage("%s is no receipt that can be read: %v", path, err)
	}
	return b, r, nil
}

func (a *app) receiptSign(path string, f *receiptFlags) error {
	switch {
	case f.key == "":
		return usage("receipt sign needs --key FILE, a private key")
	case path == "-" && f.key == "-":
		return usage("the receipt and the key cannot both come from standard input")
	case path == "-" && f.out == "":
		return usage("a receipt from standard input needs --out FILE")
	}
	out := envelopeOf(path, f.out)
	if same := sameFile(out, path, besideReceipt(path), f.key, f.artifact); same != "" {
		return usage("--out %s would replace %s", out, same)
	}
	receipt, r, err := a.wholeReceipt(path)
	if err != nil {
		return err
	}
	key, err := a.privateKey(f.key)
	if err != nil {
		return err
	}
	var about attest.Subject
	if f.artifact != "" {
		if about, err = subjectOf(f.artifact, evidenceOf(path, out)); err != nil {
			return usage("--artifact %s cannot be signed for: %v", f.artifact, err)
		}
	}
	envelope, err := attest.Sign(receipt, about, key)
	if err != nil {
		return usage("%s cannot be signed: %v", path, err)
	}
	if err := writeFile(out, envelope); err != nil {
		return fmt.Errorf("the signature cannot be written: %w", err)
	}
	line := a.lines(a.stdout, "")
	line("run", r.RunID)
	line("key", key.ID())
	line("subject", subjectText(about))
	line("signature", out)
	return nil
}

func subjectText(s attest.Subject) string {
	if s.Digest == nil {
		return "the receipt itself"
	}
	return s.String()
}

// sameFile names the first of some files that is the one at path. Empty: none is.
func sameFile(path string, others ...string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "" // it is not there, so nothing is replaced
	}
	for _, other := range others {
		if o, err := os.Stat(other); err == nil && os.SameFile(info, o) {
			return other
		}
	}
	return ""
}

// What came of one part of a verification.
const (
	held       = "held"
	broken     = "failed"
	notChecked = "not-checked"
)

// checked is what came of one part. Code and Message say why it is not held.
type checked struct {
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

func (f *checked) fail(code string, err error) {
	var e *attest.Error
	if errors.As(err, &e) {
		code = e.Code
	}
	*f = checked{broken, code, err.Error()}
}

// verification is the document receipt verify prints.
type verification struct {
	Valid     bool            `json:"valid"`
	RunID     string          `json:"runId,omitempty"` // empty: there is no receipt that can be read
	Team      string          `json:"team,omitempty"`
	KeyID     string          `json:"keyId"`
	Subject   *attest.Subject `json:"subject,omitempty"` // nil: no signature holds
	Receipt   checked         `json:"receipt"`
	Log       checked         `json:"log"`
	Signature checked         `json:"signature"`
	Artifact  checked         `json:"artifact"`
}

func (a *app) receiptVerify(path string, f *receiptFlags) error {
	if f.key == "" {
		return usage("receipt verify needs --key FILE, a public key")
	}
	s, err := a.signature(path, f.key, f.signature, f.artifact)
	if err != nil {
		return err
	}
	v := verification{KeyID: s.key.ID(), Receipt: checked{Outcome: held}, Signature: checked{Outcome: held},
		Log: checked{Outcome: notChecked, Message: "no event log is beside the receipt"}, Artifact: checked{Outcome: notChecked, Message: "give --artifact to compare"}}
	receipt, err := a.readInput(path)
	if err != nil {
		err = fmt.Errorf("the receipt cannot be read: %w", cause(err))
	}
	var r *spec.Receipt
	if err == nil {
		r, err = runtime.ReadReceipt(receipt)
	}
	if err != nil {
		v.Receipt.fail("receipt-damaged", err)
		v.Signature = checked{Outcome: notChecked, Message: "there is no receipt to hold it against"}
	} else {
		v.RunID, v.Team = r.RunID, r.Team.Name
		v.hold(s, r, receipt)
		a.holdLog(&v.Log, path, r, f)
	}
	v.Valid = v.Receipt.Outcome == held && v.Signature.Outcome == held && v.Log.Outcome != broken && v.Artifact.Outcome != broken
	if err := a.print(f.output, v, func(w io.Writer) { a.verificationText(w, &v) }); err != nil {
		return err
	}
	if !v.Valid {
		return ended(runtime.ExitGovernance)
	}
	return nil
}

// hold looks at signature and artifact.
func (v *verification) hold(s *signature, r *spec.Receipt, receipt []byte) {
	if _, err := s.verify(receipt); err != nil {
		v.Signature.fail("signature-missing", err)
		v.Artifact.Message = "no signature says what it should be"
		return
	}
	v.Subject = &s.attested.Subject
	if s.artifact == "" {
		return
	}
	v.Artifact = checked{Outcome: held}
	if err := s.differs(r); err != nil {
		v.Artifact.fail("artifact-unreadable", err)
	}
}

// holdLog holds a receipt against an event log: the one that was named, else the one beside it if there is one.
func (a *app) holdLog(to *checked, path string, r *spec.Receipt, f *receiptFlags) {
	events := f.events
	if events == "" && path != "-" {
		events = besideReceipt(path)
	}
	if events == "" {
		return
	}
	log, err := openRegular(events)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.events == "":
		return
	case err != nil:
		to.fail("log-unreadable", fmt.Errorf("the event log cannot be read: %w", cause(err)))
		return
	}
	defer log.Close()
	*to = checked{Outcome: held}
	if err := runtime.Chained(r, log); err != nil {
		to.fail("log-differs", err)
	}
}

func (a *app) verificationText(w io.Writer, v *verification) {
	word, code := "VALID", runtime.ExitOK
	if !v.Valid {
		word, code = "INVALID", runtime.ExitGovernance
	}
	fmt.Fprintf(w, "%s  exit code %d\n", word, code)
	line := a.lines(w, "")
	if v.RunID != "" {
		line("run", v.RunID+" of team "+v.Team)
	}
	line("key", v.KeyID)
	for _, part := range []struct {
		name string
		checked
	}{{"receipt", v.Receipt}, {"log", v.Log}, {"signature", v.Signature}, {"artifact", v.Artifact}} {
		text := part.Outcome
		if part.Code != "" {
			text += ": " + part.Code
		}
		if part.Message != "" {
			text += ": " + part.Message
		}
		line(part.name, text)
	}
	if v.Subject != nil {
		line("subject", v.Subject.String())
	}
}
