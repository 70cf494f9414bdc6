package network

import "sync/atomic"

// A HealthState records why nothing is received at present. The zero value
// means that all is well. Its methods are those of a [channels.HealthReporter]
// and a [channels.RecoveryNotifier].
type HealthState struct {
	err       atomic.Pointer[error]
	recovered atomic.Pointer[func()]
}

// SetHealth records why nothing is received, or with nil that messages come in.
func (s *HealthState) SetHealth(err error) {
	before := s.err.Swap(&err)
	if notify := s.recovered.Load(); notify != nil && err == nil && before != nil && *before != nil {
		(*notify)()
	}
}

// OnRecovery implements [channels.RecoveryNotifier].
func (s *HealthState) OnRecovery(notify func()) { s.recovered.Store(&notify) }

// Health implements [channels.HealthReporter].
func (s *HealthState) Health() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}
