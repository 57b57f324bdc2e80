import { render } from 'preact'
import { App } from './app.tsx'
import { startEndpointNames } from './state/endpoint-names.ts'
import { startKeyboard } from './state/keyboard.ts'
import { startRouter } from './state/router.ts'
import { loadSession } from './state/session.ts'
import { startStatus } from './state/status.ts'
import { startStream } from './state/stream.ts'
import { applyTheme } from './state/theme.ts'

applyTheme()
startRouter()
startKeyboard()
startStatus()
startStream()
startEndpointNames()
void loadSession()

const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
