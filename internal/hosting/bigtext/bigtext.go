// Package bigtext writes texts into a SQLite database that are too large to be held several
// times. The driver wants a text as a Go string, of which it makes a copy for SQLite, which
// makes a record of that: three times the text. Here SQLite reads it where it is, and the
// record is the only copy.
package bigtext

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Large is from how many bytes on a text is worth this.
const Large = 8 << 20

// ErrDriver says that the driver has no connection of SQLite where it is looked for. A text
// has to be written in the ordinary way then.
var ErrDriver = errors.New("the driver of the database is not the one that is known")

// Error is what SQLite says.
type Error struct {
	text string
	code int
}

func (e *Error) Error() string { return e.text }

// Code is the result code, as that of the driver's own errors.
func (e *Error) Code() int { return e.code }

// Handle is SQLite's own connection.
type Handle struct {
	tls *libc.TLS
	db  uintptr
}

// On lets do use SQLite's own connection, which nobody else uses meanwhile.
func On(conn *sql.Conn, do func(*Handle) error) error {
	return conn.Raw(func(driver any) error {
		v := reflect.Indirect(reflect.ValueOf(driver))
		if v.Kind() != reflect.Struct || v.Type().PkgPath() != "modernc.org/sqlite" {
			return ErrDriver
		}
		db := v.FieldByName("db")
		if db.Kind() != reflect.Uintptr || db.Uint() == 0 {
			return ErrDriver
		}
		h := &Handle{tls: libc.NewTLS(), db: uintptr(db.Uint())}
		defer h.tls.Close()
		return do(h)
	})
}

// Room is memory that goes back to the system once free is called.
func (h *Handle) Room(size int64) (b []byte, free func(), err error) {
	m := &memory{}
	p, err := m.room(h, size)
	if err != nil {
		return nil, nil, err
	}
	return bytesAt(p, size), func() {
		m.free(h)
		h.giveBack(size)
	}, nil
}

// giveBack gives what was freed of a text, or of its record, back to the system. The
// driver's allocator keeps what was freed last for the next one of about that size.
func (h *Handle) giveBack(size int64) {
	var m memory
	defer m.free(h)
	p, err := m.room(h, size)
	page := uintptr(os.Getpagesize())
	if from, to := (p+page-1)&^(page-1), (p+uintptr(size))&^(page-1); err == nil && from < to {
		_ = unix.Madvise(bytesAt(from, int64(to-from)), unix.MADV_DONTNEED) // otherwise it stays
	}
}

// Exec runs a statement whose first parameter is a text, of UTF-8, which SQLite reads where it
// is. The other parameters are the args, each a string or an int64.
func (h *Handle) Exec(ctx context.Context, statement string, text []byte, args ...any) error {
	defer h.giveBack(int64(len(text)))
	if copies {
		own, free, err := h.Room(int64(len(text)))
		if err != nil {
			return err
		}
		defer free()
		copy(own, text)
		text = own
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(unsafe.SliceData(text))
	var m memory
	defer m.free(h)
	stmt, err := h.prepare(statement)
	if err != nil {
		return err
	}
	defer sqlite3.Xsqlite3_finalize(h.tls, stmt) // before the memory goes
	err = h.check(sqlite3.Xsqlite3_bind_text64(h.tls, stmt, 1, uintptr(unsafe.Pointer(unsafe.SliceData(text))), uint64(len(text)), 0, sqlite3.SQLITE_UTF8))
	for i, arg := range args {
		if err != nil {
			return err
		}
		switch arg := arg.(type) {
		case int64:
			err = h.check(sqlite3.Xsqlite3_bind_int64(h.tls, stmt, int32(i+2), arg))
		case string:
			var p uintptr
			if p, err = m.text(h, arg); err == nil {
				err = h.check(sqlite3.Xsqlite3_bind_text64(h.tls, stmt, int32(i+2), p, uint64(len(arg)), 0, sqlite3.SQLITE_UTF8))
			}
		default:
			err = fmt.Errorf("an argument is a %T", arg)
		}
	}
	if err != nil {
		return err
	}
	return h.step(ctx, stmt)
}

// step runs a statement to its end, which the context may bring early.
func (h *Handle) step(ctx context.Context, stmt uintptr) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		tls := libc.NewTLS()
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, h.db)
	})
	rc := int32(sqlite3.SQLITE_ROW)
	for rc == sqlite3.SQLITE_ROW {
		rc = sqlite3.Xsqlite3_step(h.tls, stmt)
	}
	if !stop() {
		<-interrupted
	}
	err := h.check(rc)
	if rc&0xff == sqlite3.SQLITE_INTERRUPT && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

func (h *Handle) prepare(statement string) (stmt uintptr, err error) {
	return h.with(func(s []uintptr, out uintptr) int32 {
		return sqlite3.Xsqlite3_prepare_v2(h.tls, h.db, s[0], -1, out, 0)
	}, statement)
}

// part is how much is read at once.
const part = 1 << 20

// Read reads a text or blob of a database, such as main, into b, which has its size.
func (h *Handle) Read(database, table, column string, row int64, b []byte) error {
	blob, err := h.with(func(s []uintptr, out uintptr) int32 {
		return sqlite3.Xsqlite3_blob_open(h.tls, h.db, s[0], s[1], s[2], row, 0, out)
	}, database, table, column)
	if err != nil {
		return err
	}
	defer sqlite3.Xsqlite3_blob_close(h.tls, blob) // it was only read
	if n := sqlite3.Xsqlite3_blob_bytes(h.tls, blob); int64(n) != int64(len(b)) {
		return fmt.Errorf("row %d of %s has %d bytes instead of %d", row, table, n, len(b))
	}
	// SQLite must not write to memory of Go's, which may be a stack that moves.
	var m memory
	defer m.free(h)
	p, err := m.room(h, part)
	for at := 0; err == nil && at < len(b); {
		n := min(part, len(b)-at)
		err = h.check(sqlite3.Xsqlite3_blob_read(h.tls, blob, p, int32(n), int32(at)))
		at += copy(b[at:], bytesAt(p, int64(n)))
	}
	return err
}

// with calls SQLite with strings as it wants them, for a pointer that it returns.
func (h *Handle) with(call func(texts []uintptr, out uintptr) int32, texts ...string) (got uintptr, err error) {
	var m memory
	defer m.free(h)
	for _, text := range texts {
		if _, err := m.text(h, text+"\x00"); err != nil {
			return 0, err
		}
	}
	all := m.parts
	out, err := m.room(h, int64(unsafe.Sizeof(got)))
	if err != nil {
		return 0, err
	}
	if err := h.check(call(all, out)); err != nil {
		return 0, err
	}
	return *(*uintptr)(unsafe.Pointer(unsafe.SliceData(bytesAt(out, int64(unsafe.Sizeof(got)))))), nil
}

// memory is some of SQLite's.
type memory struct{ parts []uintptr }

func (m *memory) room(h *Handle, n int64) (uintptr, error) {
	p := sqlite3.Xsqlite3_malloc64(h.tls, uint64(max(n, 1)))
	if p == 0 {
		return 0, fmt.Errorf("there is no memory for %d bytes", n)
	}
	m.parts = append(m.parts, p)
	return p, nil
}

func (m *memory) text(h *Handle, text string) (uintptr, error) {
	p, err := m.room(h, int64(len(text)))
	if err == nil {
		copy(bytesAt(p, int64(len(text))), text)
	}
	return p, err
}

func (m *memory) free(h *Handle) {
	for _, p := range m.parts {
		sqlite3.Xsqlite3_free(h.tls, p)
	}
}

func (h *Handle) check(rc int32) error {
	if rc == sqlite3.SQLITE_OK || rc == sqlite3.SQLITE_DONE {
		return nil
	}
	text := libc.GoString(sqlite3.Xsqlite3_errmsg(h.tls, h.db))
	return &Error{strings.TrimSpace(fmt.Sprintf("%s (%d)", text, rc)), int(rc)}
}

// bytesAt is memory of SQLite's. It is none of Go's, and does not move.
func bytesAt(p uintptr, n int64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}
