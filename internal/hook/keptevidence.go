package hook

import (
	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// evidenceOf is what is kept with a delivery, which is asked several times in a Stop.
func (h *hook) evidenceOf(d *inbox.Delivery) recovery.Evidence {
	if h.kept.of != d {
		h.kept.of, h.kept.Evidence = d, recovery.EvidenceOf(d)
	}
	return h.kept.Evidence
}

// keptEvidence is the evidence of a delivery, read once.
type keptEvidence struct {
	of *inbox.Delivery
	recovery.Evidence
}
