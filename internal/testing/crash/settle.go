package crash

import (
	"math/rand/v2"
	"slices"
)

// sector is the unit in which a disk may write the bytes of one call in any
// order.
const sector = 512

// Worst is what a power loss leaves when nothing was written that nobody
// waited for. Like all images made of an image, it has nothing pending.
func (img *Image) Worst() *Image { return img.settle(never, inOrder(dropped)) }

// All is what a power loss leaves when all was written just in time.
func (img *Image) All() *Image { return img.settle(always, inOrder(kept)) }

// NamesAlone is what a power loss leaves when the names were written and the
// contents were not: a new file without a sync is empty.
func (img *Image) NamesAlone() *Image { return img.settle(always, inOrder(dropped)) }

// LengthsAlone is [Image.NamesAlone] when the lengths were written, too: what
// a file grew by is zero.
func (img *Image) LengthsAlone() *Image { return img.settle(always, inOrder(lengthAlone)) }

// ContentsAlone is what a power loss leaves when the contents were written and
// the names were not.
func (img *Image) ContentsAlone() *Image { return img.settle(never, inOrder(kept)) }

// Random is some mixture that a power loss may leave: every change of a name
// that was not synced is there or not, and every change of content that was
// not synced is there, is not, or is there in part, in any order.
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
	// The sectors from some one on came first, if there are two.
	first := sector - c.off%sector
	if c.isTruncate || first >= n {
		return dropped(c)
	}
	return fate{first + rng.IntN((n-first-1)/sector+1)*sector, n, true}
}

// settle makes an image of the names that keep wants, each with the content
// that content gives.
func (img *Image) settle(keep func() bool, content func(*inode) []byte) *Image {
	settled := newImage(img.root)
	done := map[*inode]*inode{}
	names := img.names(keep)
	for _, name := range sortedKeys(names) { // in order, for the same random numbers
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
