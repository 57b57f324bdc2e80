// The words of the view `work`, which files and servers have in common: what became of an event is called the same in both.

/** For a `case`. `d` is the dead letter that the event is in, `u` the record of the run that ended it. */
export const ENDED_WORDS: string = `when d.state = 'dead' then 'dead_letter'
      when d.state = 'queued' then 'pending'
      when d.state is not null then d.state
      when u.kind in ('done', 'partial') then 'completed'
      when u.kind = 'dead' then 'dead_letter'
      when u.kind is not null then u.kind`
