package crash

import (
	"math/rand/v2"
	"slices"
)

// sector is the unit in which a disk may reorder the bytes of one call.
const sector = 512

// Worst is what a power loss leaves if nothing was written that was not synced. Like
// all images made from an image, it has nothing pending.
func (img *Image) Worst() *Image { return img.settle(never, inOrder(dropped)) }

// All is what a power loss leaves if everything was written just in time.
func (img *Image) All() *Image { return img.settle(always, inOrder(kept)) }

// NamesAlone is what a power loss leaves if names were written and contents were not:
// a new file without a sync is empty.
func (img *Image) NamesAlone() *Image { return img.settle(always, inOrder(dropped)) }

// LengthsAlone is [Image.NamesAlone] with the lengths written too: what a file grew
// by is zero.
func (img *Image) LengthsAlone() *Image { return img.settle(always, inOrder(lengthAlone)) }

// ContentsAlone is what a power loss leaves if contents were written and names were
// not.
func (img *Image) ContentsAlone() *Image { return img.settle(never, inOrder(kept)) }

// Random is a mixture that a power loss may leave: each unsynced change of a name is
// kept or lost, and each unsynced change of content is kept, lost, or kept in part, in
// any order.
func (img *Image) Random(rng *rand.Rand) *Image {
	likely := rng.Float64()
	return img.settle(
		func() bool { return rng.Float64() < likely },
		func(file *inode) []byte {
			pending := slices.Clone(file.pending)
			if rng.IntN(2) == 0 {
				rng.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
			}
			return file.settle(pending, func(c change) fate { return randomFate(rng, c) })
		},
	)
}

func randomFate(rng *rand.Rand, c change) fate {
	n := len(c.data)
	switch rng.IntN(6) {
	case 0, 1:
		return kept(c)
	case 2:
		return lengthAlone(c)
	case 3: // torn
		return fate{0, rng.IntN(n + 1), false}
	case 4: // torn, and zero after that where the file grew
		return fate{0, rng.IntN(n + 1), true}
	}
	// If there are two sectors or more, a last part of them was written first.
	first := sector - c.off%sector
	if c.isTruncate || first >= n {
		return dropped(c)
	}
	return fate{first + rng.IntN((n-first-1)/sector+1)*sector, n, true}
}

// settle makes an image of the names for which keep is true, with their content from
// content.
func (img *Image) settle(keep func() bool, content func(*inode) []byte) *Image {
	settled := newImage(img.root)
	done := map[*inode]*inode{}
	names := img.names(keep)
	for _, name := range sortedKeys(names) { // a fixed order, so that random numbers repeat
		file := names[name]
		if done[file] == nil {
			done[file] = newFile(content(file))
			done[file].link = file.link
		}
		settled.add(name, done[file])
	}
	return settled
}

func inOrder(choose func(change) fate) func(*inode) []byte {
	return func(file *inode) []byte { return file.settle(file.pending, choose) }
}

func never() bool  { return false }
func always() bool { return true }
