// The few ways text may stand out: from the terminal's own palette, and none that is hard to read on white or on black.

export type Style = 'plain' | 'bold' | 'dim' | 'red' | 'green' | 'magenta' | 'cyan'

export type Paint = (style: Style, text: string) => string

const CODES: Readonly<Record<Style, number>> = { plain: 0, bold: 1, dim: 2, red: 31, green: 32, magenta: 35, cyan: 36 }

export const coloured: Paint = (style, text) => (style === 'plain' ? text : `\x1b[${CODES[style]}m${text}\x1b[0m`)

export const uncoloured: Paint = (_style, text) => text
