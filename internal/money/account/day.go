package account

import (
	"time"

	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// day returns the account's day while it lasts, else the local date. Only then does it load the local time zone.
func (m *Money) day(a *Account) string {
	now := m.books.Now()
	if a.lasts(now) {
		return a.Day
	}
	a.dayBegan, a.dayEnds = m.DayBegan().Unix(), m.Midnight().Unix()
	return now.Local().Format(time.DateOnly)
}

// add counts a charge on that day.
func (a *Account) add(day string, amount price.Amount, outside bool) {
	if !a.isOn(day) {
		a.Day, a.Today = day, price.Amount{}
	}
	a.Today, a.Total = a.Today.Plus(amount), a.Total.Plus(amount)
	if outside {
		a.Outside = a.Outside.Plus(amount)
	}
}

// On returns what was charged on the day of that time, plus the part of open that was spent on it. The account knows
// only the last day with a charge.
func (a *Account) On(now time.Time, open ...Uncharged) (sum price.Amount) {
	if a.lasts(now) || a.isOn(now.Local().Format(time.DateOnly)) {
		sum = a.Today
	}
	for _, o := range open {
		sum = sum.Plus(o.Minus(o.Before))
	}
	return sum
}

// lasts reports whether the account's day has not ended, in the time zone that began it.
func (a *Account) lasts(now time.Time) bool {
	return a.Day != "" && now.Unix() < a.dayEnds && now.Unix() >= a.dayEnds-26*60*60
}

// isOn reports whether the account's day is that local date, or a later date in a time zone further east. Otherwise
// processes in two time zones would take turns to begin a new day, and no daily limit would hold.
func (a *Account) isOn(day string) bool {
	if a.Day <= day {
		return a.Day == day
	}
	kept, err1 := time.Parse(time.DateOnly, a.Day)
	now, err2 := time.Parse(time.DateOnly, day)
	return err1 == nil && err2 == nil && kept.Sub(now) <= 2*24*time.Hour
}

// Midnight returns the end of the day that [Money.Today] counts: the local day, unless another time zone's still lasts.
func (m *Money) Midnight() time.Time {
	now := m.books.Now()
	if a := m.Account(); a.lasts(now) {
		return time.Unix(a.dayEnds, 0).UTC()
	}
	return midnight(now.Local(), 1).UTC()
}

// DayBegan returns the beginning of the day that [Money.Today] counts.
func (m *Money) DayBegan() time.Time {
	now := m.books.Now()
	if a := m.Account(); a.lasts(now) && a.dayBegan > 0 && a.dayBegan <= now.Unix() {
		return time.Unix(a.dayBegan, 0).UTC()
	}
	return midnight(now.Local(), 0).UTC()
}

// midnight returns when the day begins that is so many days after that of now, in the time zone of now.
func midnight(now time.Time, days int) time.Time {
	y, m, d := now.Date()
	return words.Showing(time.Date(y, m, d+days, 0, 0, 0, 0, time.UTC), now.Location())[0]
}
