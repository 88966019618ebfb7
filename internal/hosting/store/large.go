package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// errDriver means that the driver's connection does not hold SQLite's where it is expected.
var errDriver = errors.New("this release of the database's driver is not supported")

// sqliteError is an error of SQLite, like the driver's own.
type sqliteError struct {
	text string
	code int
}

func (e *sqliteError) Error() string { return e.text }
func (e *sqliteError) Code() int     { return e.code }

type handle struct {
	tls *libc.TLS
	db  uintptr
}

// putText runs a statement whose parameters are a text of the given size and an ID. The driver would copy a Go
// string for SQLite, which makes a record of the copy: the text would be in memory three times. putText reads it
// into SQLite's memory, so the record is the only copy.
func putText(ctx context.Context, pool *sql.DB, statement string, from io.Reader, size int64, id string) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // it goes back to the pool
	return conn.Raw(func(driver any) error {
		v := reflect.Indirect(reflect.ValueOf(driver))
		if v.Kind() != reflect.Struct || v.Type().PkgPath() != "modernc.org/sqlite" {
			return errDriver
		}
		db := v.FieldByName("db")
		if db.Kind() != reflect.Uintptr || db.Uint() == 0 {
			return errDriver
		}
		h := &handle{tls: libc.NewTLS(), db: uintptr(db.Uint())}
		defer h.tls.Close()
		defer h.giveBack(size) // of the record
		defer h.giveBack(size) // of the text
		text, err := h.room(size)
		if err != nil {
			return err
		}
		defer sqlite3.Xsqlite3_free(h.tls, text)
		if _, err := io.ReadFull(from, bytesAt(text, size)); err != nil {
			return err
		}
		return h.exec(ctx, statement, text, size, id)
	})
}

// exec runs a statement to its end, or until ctx is done.
func (h *handle) exec(ctx context.Context, statement string, text uintptr, size int64, id string) error {
	var own [2]uintptr // the statement and the ID, which end in a NUL
	for i, s := range []string{statement, id} {
		p, err := h.room(int64(len(s)) + 1)
		if err != nil {
			return err
		}
		defer sqlite3.Xsqlite3_free(h.tls, p)
		copy(bytesAt(p, int64(len(s))+1), s+"\x00")
		own[i] = p
	}
	out, err := h.room(int64(unsafe.Sizeof(own[0])))
	if err != nil {
		return err
	}
	defer sqlite3.Xsqlite3_free(h.tls, out)
	if err := h.check(sqlite3.Xsqlite3_prepare_v2(h.tls, h.db, own[0], -1, out, 0)); err != nil {
		return err
	}
	stmt := *(*uintptr)(unsafe.Pointer(unsafe.SliceData(bytesAt(out, int64(unsafe.Sizeof(own[0]))))))
	defer sqlite3.Xsqlite3_finalize(h.tls, stmt) // before the memory goes
	err = h.check(sqlite3.Xsqlite3_bind_text64(h.tls, stmt, 1, text, uint64(size), 0, sqlite3.SQLITE_UTF8))
	if err == nil {
		err = h.check(sqlite3.Xsqlite3_bind_text64(h.tls, stmt, 2, own[1], uint64(len(id)), 0, sqlite3.SQLITE_UTF8))
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		tls := libc.NewTLS()
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, h.db)
	})
	rc := sqlite3.Xsqlite3_step(h.tls, stmt)
	if !stop() {
		<-interrupted
	}
	if rc&0xff == sqlite3.SQLITE_INTERRUPT && ctx.Err() != nil {
		return ctx.Err()
	}
	return h.check(rc)
}

// room allocates memory of SQLite's, which Go neither manages nor moves.
func (h *handle) room(n int64) (uintptr, error) {
	p := sqlite3.Xsqlite3_malloc64(h.tls, uint64(max(n, 1)))
	if p == 0 {
		return 0, fmt.Errorf("there is no memory for %d bytes", n)
	}
	return p, nil
}

// giveBack returns the freed memory of a text, or of its record, to the system. The driver's
// allocator keeps freed memory for the next block of about that size.
func (h *handle) giveBack(size int64) {
	p, err := h.room(size)
	if err != nil {
		return // it stays
	}
	defer sqlite3.Xsqlite3_free(h.tls, p)
	page := uintptr(os.Getpagesize())
	if from, to := (p+page-1)&^(page-1), (p+uintptr(size))&^(page-1); from < to {
		_ = unix.Madvise(bytesAt(from, int64(to-from)), unix.MADV_DONTNEED) // otherwise it stays
	}
}

func (h *handle) check(rc int32) error {
	if rc == sqlite3.SQLITE_OK || rc == sqlite3.SQLITE_DONE {
		return nil
	}
	text := libc.GoString(sqlite3.Xsqlite3_errmsg(h.tls, h.db))
	return &sqliteError{strings.TrimSpace(fmt.Sprintf("%s (%d)", text, rc)), int(rc)}
}

func bytesAt(p uintptr, n int64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}
