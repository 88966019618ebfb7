package journal

import (
	"slices"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Place decides where the lines of the commit that r is to become go, and notes
// them in r. queue is the open queue file, or nil. A line for the queue goes where
// it says only if nobody else appends meanwhile.
func (s *Store) Place(r *Record, pending []Line, queue *disk.File) (err error) {
	r.Appends = nil
	for _, l := range pending {
		before := lastOf(r.Appends, l.Kind)
		switch {
		case l.Kind == Queue:
			l, err = placeInQueue(l, r.QueueGeneration, before, queue)
		default:
			l, err = s.placeInFile(l, &r.Ends[l.Kind], before != nil)
		}
		if err != nil {
			return err
		}
		r.Appends = append(r.Appends, l)
	}
	return nil
}

func lastOf(all []Line, k Kind) *Line {
	for i, l := range slices.Backward(all) {
		if l.Kind == k {
			return &all[i]
		}
	}
	return nil
}

// placeInFile puts a line at the end of an append-only file. more says that this
// commit has lines for the file already, which its size does not show yet.
func (s *Store) placeInFile(l Line, end *End, more bool) (Line, error) {
	if !more {
		size, whole, err := s.files[l.Kind].lineEnd()
		if err != nil {
			return l, err
		}
		if size < end.At {
			end.Generation++ // rotated away or truncated since
		}
		end.At, l.Newline = size, !whole
	}
	l.At, l.Generation = end.At, end.Generation
	end.At += l.size()
	return l, nil
}

// lineEnd is the file's size, and whether it ends in a newline.
func (f *File) lineEnd() (size int64, whole bool, err error) {
	open, size, err := f.made()
	if err != nil {
		return 0, false, err
	}
	whole, err = lines.Ends(open, size)
	return size, whole, err
}

// placeInQueue puts a line at the end of the queue file, or behind the line before
// it in the same commit.
func placeInQueue(l Line, generation int, before *Line, queue *disk.File) (_ Line, err error) {
	l.Generation = generation
	if before != nil {
		l.At = before.At + before.size()
		return l, nil
	}
	if queue == nil {
		return l, nil
	}
	size := queue.Info().Size
	whole, err := lines.Ends(queue, size)
	l.At, l.Newline = size, !whole || l.Data != nil // see unglue
	return l, err
}
