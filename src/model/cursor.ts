// A cursor marks the end of a page: the number by which the records of a kind are ordered, as text.

/** `isCursor` returns whether a text can be the `next` of a page; '' asks for the first page. */
export function isCursor(text: string): boolean {
  return text === '' || (/^\d{1,16}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER)
}
