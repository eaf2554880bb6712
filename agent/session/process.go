package session

import (
	"maps"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/trace"
)

// maxNamed is how often a recording takes in other attributes. Each change begins new series in servers, and whoever
// runs the JVM can change what its process says at any time.
const maxNamed = 8

// name takes in attributes that the probe found in the process (its OpenTelemetry context): they come before all that
// the agent knows. They hold from now on: for status, metrics, profiles, tables, the next file and the next incident.
// changed: they are others than before.
func (s *Session) name(said trace.Resource) (changed bool) {
	if len(said) == 0 || maps.Equal(said, s.in.said) || s.in.named == maxNamed {
		return false
	}
	s.in.said = said
	s.in.named++
	whose := said.Over(s.in.base)
	if maps.Equal(whose, s.in.whose) {
		return false
	}
	s.in.whose = whose
	s.out.st.KeepResource(whose)
	s.set(func(st *Status) { st.Resource = whose })
	logs.Write(&s.log, logs.RecordingNamed, logs.Service.Of(whose.String()))
	return true
}
