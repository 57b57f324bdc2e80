import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../lib/api.ts'
import { Button, Code } from '../components/basics.tsx'
import { Icon, Logo } from '../components/icon.tsx'
import { signIn } from '../state/session.ts'

export function SignIn(): JSX.Element {
  const [key, setKey] = useState('')
  const [error, setError] = useState<ApiError>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · Sluice'
  }, [])
  const submit = async (): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await signIn(key.trim())
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem
      setError(problem)
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <Scene />
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <span class="brand">
          <Logo />
          Sluice
        </span>
        <div>
          <h1>Sign in</h1>
          <p class="soft">
            to <b>{globalThis.location.host}</b>
          </p>
        </div>
        <label>
          API key
          <span class="field tall">
            <Icon name="keys" size={14} />
            <input
              type="password"
              name="key"
              autofocus
              autocomplete="current-password"
              spellcheck={false}
              value={key}
              aria-invalid={error !== undefined}
              aria-describedby="sign-in-error"
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </span>
        </label>
        <p id="sign-in-error" class="c-fail small" role="alert">
          {error !== undefined && messageOf(error)}
        </p>
        <Button type="submit" kind="solid" disabled={isBusy || key.trim() === ''}>
          Sign in
        </Button>
        <p class="small dim">
          The browser keeps a cookie that no script can read. A key with the role <b>read</b> sees everything; one with
          the role <b>operate</b> can also act.
        </p>
        <div class="no-key">
          <p class="small dim">No key yet? Run this where Sluice runs:</p>
          <Code text="sluice keys create ada --role=operate" label="the command" />
        </div>
      </form>
    </main>
  )
}

function messageOf(error: ApiError): string {
  if (error.code === 'KEY_INVALID') return 'This key is not valid: it is mistyped, or it was revoked.'
  if (error.status === 429)
    return `Too many wrong keys came from this address. Try again in ${error.retryAfter ?? 60} s.`
  return `${error.message} ${error.fix}`
}

/** Lanes behind the card, as an ornament. */
function Scene(): JSX.Element {
  return (
    <svg class="scene" viewBox="0 0 1440 600" preserveAspectRatio="xMidYMid slice" aria-hidden="true">
      <path class="water" d="M86 120h130v-16h129v-12h86v-10h519v60H86z" />
      <path class="surface" d="M86 120h130v-16h129v-12h86v-10h519" />
      <path class="gate" d="M947 55h6v87h-6zM940 54h20v5h-20z" />
      <rect class="ran" x="259" y="208" width="461" height="62" rx="4" />
      <rect class="lease" x="720" y="208" width="303" height="62" rx="4" />
      <path class="water" d="M29 505h115v-16h259v-18h776v58H29z" />
      <path class="surface" d="M29 505h115v-16h259v-18h776" />
      <path class="gate" d="M1177 452h6v87h-6zM1170 451h20v5h-20z" />
      <path class="now" d="M720 0v600" />
    </svg>
  )
}
