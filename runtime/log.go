package runtime

import (
	"github.com/hashicorp/go-hclog"

	"github.com/open-multi-agent/oma/runtime/core"
)

// watch puts commentary beside whoever watches. The receipt and the log of events are the truth; this is for somebody
// who wants to see what is going on, named by agent.
func (r *Runner) watch() func(*core.Effect, *core.Result) {
	if !r.o.Log.IsError() {
		return r.o.Watch
	}
	named := map[string]hclog.Logger{"": r.o.Log}
	return func(e *core.Effect, res *core.Result) {
		log := named[e.AgentName]
		if log == nil {
			log = r.o.Log.Named(e.AgentName)
			named[e.AgentName] = log
		}
		if res != nil {
			r.comment(log, e, res)
		}
		if r.o.Watch != nil {
			r.o.Watch(e, res)
		}
	}
}

func (r *Runner) comment(log hclog.Logger, e *core.Effect, res *core.Result) {
	switch {
	case e.Kind == core.Note:
		log.Info("task "+e.Status.Status, "task", e.TaskID, "reason", string(e.Status.StopReason), "cause", r.mask(e.Status.Cause))
	case res.Err != nil:
		log.Warn(string(e.Kind)+" failed", "id", e.ID, "kind", res.Err.Kind, "message", r.mask(res.Err.Message))
	case e.Kind == core.ModelCall && res.Model != nil && res.Model.Attempts > 1:
		log.Warn("model call needed several attempts", "id", e.ID, "attempts", res.Model.Attempts)
	case e.Kind == core.Judge && res.Judged != nil && !res.Judged.Allowed():
		log.Info("call not allowed", "id", e.ID, "tool", e.Call.Name, "refused", res.Judged.Refused, "reason", r.mask(res.Judged.Reason))
	default:
		log.Debug(string(e.Kind), "id", e.ID, "cancelled", res.Cancelled)
	}
}
