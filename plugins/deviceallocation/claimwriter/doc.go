// Package claimwriter is the only writer of ResourceClaims, and of the pod status that belongs to them. It carries
// out, completely or not at all, what others decided: it puts an allocation and a reservation into a pod's claims
// (Bind), takes them out again (Release, Deallocate), and creates, deletes and announces the claim of a pod that
// asks for extended resources.
//
// It never chooses a device, a node or a claim, never waits for binding conditions and keeps no state between calls.
// What it guards is the way to the API server:
//
//   - Nobody's work is overwritten. Every write carries the resourceVersion of the claim that it was decided on.
//     After a conflict the claim is read again and the decision is made anew: a claim that is being deleted, was
//     replaced under its name, or was allocated by somebody else stops the attempt.
//   - A lost answer is no answer. After a time-out the write may or may not have been applied, so the claim is read
//     before anything is concluded from it.
//   - All or nothing. If one claim of a pod cannot be written, what this attempt wrote into the others is taken out
//     again. Claims that stayed allocated without a pod would hold their devices until somebody deletes them: the
//     controller-manager deallocates only claims from which it removed the last consumer itself.
//
// What is reserved for a PodGroup is the exception from all or nothing: it stays, because other pods of the group may
// rely on it, until Deallocate or Release is called for the group.
//
// One gap is left, and it closes itself: a write whose answer was lost may be applied after the roll-back has looked.
// It then carries the pod's reservation. The pod's next attempt finds the claim allocated and uses it; if the pod is
// deleted instead, the controller-manager removes the reservation and with it the allocation.
//
// The callers are the plugin's PreBind (Bind), Unreserve (Release), PostFilter (Deallocate, DeleteClaim) and
// PodGroupPostFilter (Deallocate, Release).
package claimwriter
