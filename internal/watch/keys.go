package watch

import "cmp"

// Key handles one key, as the terminal library spells it: "a", "up", "ctrl+c". It returns what the caller is to do.
func (b *Board) Key(key string) Effect {
	switch key {
	case "ctrl+c":
		return Quit{}
	case "ctrl+z":
		return Suspend{}
	}
	if b.Asking != nil {
		return b.answer(key)
	}
	if b.Help {
		b.Help = false
		return nil
	}
	if b.move(key) {
		return nil
	}
	switch key {
	case "q":
		return Quit{}
	case "?", "h":
		b.Help = true
	case "esc", "left", "backspace":
		return b.back()
	case "enter", "right":
		return b.enter()
	default:
		b.ask(key)
	}
	return nil
}

// answer takes the key after a question. Only y means yes, so that a key typed once too often does nothing.
func (b *Board) answer(key string) Effect {
	asked := b.Asking
	b.Asking = nil
	if key != "y" {
		b.say(false, "nothing was done")
		return nil
	}
	b.Doing, b.Said = asked.Do.Doing, ""
	return asked.Do
}

// move takes the keys that choose another line.
func (b *Board) move(key string) bool {
	const far = 1 << 30
	page := max(1, b.Height-6)
	by, moved := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "space": page, "home": -far, "g": -far, "end": far, "G": far,
	}[key]
	switch {
	case !moved:
	case b.Life != nil:
		b.Life.Top = max(0, b.Life.Top+by) // drawing knows where the end is
	case b.Page != nil:
		b.Page.Selected = max(0, min(b.Page.Selected+by, len(b.Page.Items)-1))
	case len(b.Picture.Inboxes) > 0:
		i := max(0, min(b.Index()+by, len(b.Picture.Inboxes)-1))
		b.Selected = b.Picture.Inboxes[i].Path()
	}
	return moved
}

func (b *Board) back() Effect {
	switch {
	case b.Life != nil:
		b.Life = nil
	case b.Page != nil:
		b.Page = nil
	default:
		b.Said = ""
	}
	return nil
}

func (b *Board) enter() Effect {
	switch {
	case b.Life != nil:
		return nil
	case b.Page != nil:
		item, any := b.Page.Item()
		if !any {
			return nil
		}
		b.Life = &Life{Item: item, Loaded: item.EntryID == ""}
		if b.Life.Loaded {
			return nil
		}
		return Find{item, act(b.Page.Path, "log", cmp.Or(item.ID, item.EntryID))}
	}
	if now, any := b.selected(); any {
		b.Page = &Page{Path: now.Path()}
		return b.reload()
	}
	return nil
}
