// Light, dark, or what the system says. The choice is kept on this device.
import { signal } from '@preact/signals'

const KEY = 'sluice-theme'

export type Theme = 'light' | 'dark' | 'system'

export const theme = signal<Theme>(stored())

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    // Storage may be forbidden; the page then follows the system.
    return 'system'
  }
}

export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme.value
}

/** `toggleTheme` switches to the opposite of what is shown. */
export function toggleTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  const shown = theme.value === 'system' ? system : theme.value
  theme.value = shown === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem(KEY, theme.value)
  } catch {
    // The choice then lasts until the page is closed.
  }
  applyTheme()
}
