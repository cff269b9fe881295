package claimwriter

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons for which a claim or pod was not written. Test for them with errors.Is; the *Error around them has the
// object and the operation. Everything else inside an *Error comes from the API client as it is.
var (
	// ErrBeingDeleted: the claim has a deletion timestamp and accepts no new consumer.
	ErrBeingDeleted = errors.New("the claim is being deleted")
	// ErrGone: the object does not exist any more.
	ErrGone = errors.New("the object was deleted meanwhile")
	// ErrReplaced: another object has taken the name.
	ErrReplaced = errors.New("the object was replaced meanwhile by another one of the same name")
	// ErrAllocatedElsewhere: the claim holds an allocation that the caller has not seen and did not ask for.
	ErrAllocatedElsewhere = errors.New("allocated by another scheduler meanwhile")
	// ErrDeallocated: the claim was to be reserved with the allocation it had, but has none any more.
	ErrDeallocated = errors.New("the claim was deallocated meanwhile")
	// ErrTooManyConsumers: the claim has as many consumers as the API allows.
	ErrTooManyConsumers = errors.New("the claim has reached the limit of 256 consumers: wait until a pod that uses it has finished, or give the pod another claim")
	// ErrInUse: the claim is reserved for a consumer other than the pod.
	ErrInUse = errors.New("the claim is reserved for another consumer")
	// ErrListedTwice: one call names the same claim more than once.
	ErrListedTwice = errors.New("the claim is listed more than once in one call")
)

// Operation is a step of the writer, in the words that appear in its errors.
type Operation string

const (
	OperationRead            Operation = "read"
	OperationBind            Operation = "bind"
	OperationAddFinalizer    Operation = "add finalizer to"
	OperationRemoveFinalizer Operation = "remove finalizer from"
	OperationWriteStatus     Operation = "write allocation and reservation to"
	OperationRollBack        Operation = "roll back"
	OperationRelease         Operation = "release"
	OperationDeallocate      Operation = "deallocate"
	OperationCreate          Operation = "create"
	OperationDelete          Operation = "delete"
	OperationPatchPodStatus  Operation = "patch extended resource status of"
)

// Error says which operation failed on which object. An error of a call on several claims can hold several of them:
// errors.As finds the first.
type Error struct {
	Operation Operation
	// Kind is "claim" or "pod".
	Kind string
	Name types.NamespacedName
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s %s: %v", e.Operation, e.Kind, e.Name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func claimError(op Operation, claim metav1.Object, err error) error {
	return objectError(op, "claim", claim, err)
}

// objectError names the object in err, unless a step before has done so already.
func objectError(op Operation, kind string, obj metav1.Object, err error) error {
	var named *Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &Error{Operation: op, Kind: kind, Name: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, Err: err}
}

// isUnsettled is true for the error of a request after which the object must be read and decided on once more: the
// write was refused because the object had changed, or it is not known whether the request was carried out.
func isUnsettled(err error) bool {
	return apierrors.IsConflict(err) || isLost(err)
}

// isLost is true if the request that failed with err may have been carried out all the same: it ended without an answer
// of the API server, or with one that says that the server itself does not know.
func isLost(err error) bool {
	var failed *requestError
	if !errors.As(err, &failed) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(failed.error, &status) {
		return true
	}
	code := status.Status().Code
	return code < http.StatusBadRequest || code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
}

// requestError marks the errors that come from the API client, as opposed to the reasons above.
type requestError struct{ error }

func (e *requestError) Unwrap() error { return e.error }

func requestFailed(err error) error {
	if err == nil {
		return nil
	}
	return &requestError{err}
}

// RollBackFailed reports whether an error of Bind says that something which the
// call wrote, or may have written, could not be taken out again.
func RollBackFailed(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *Error:
		return e.Operation == OperationRollBack || RollBackFailed(e.Err)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), RollBackFailed)
	default:
		return RollBackFailed(errors.Unwrap(err))
	}
}
