/** The form for the API key of staff, or of every visitor if the shop has no key. */
import { useActionState, useEffect, useRef, useState } from 'react'
import { DeveloperNote } from './DeveloperNote.tsx'
import { Page } from './Page.tsx'
import { Portrait } from './Portrait.tsx'
import { isTaken, mayAdd, shopKey } from './petstore.ts'
import { categories, howToGetKey, shopName, tagline } from './shop.ts'

interface Props {
  /** Whether the shop is open to visitors, so that only staff need a key. */
  isOpen: boolean
  /** The key that the service no longer accepts, if it is the reason for this form. */
  expired: string | undefined
  /** Called with a valid key. */
  onEnter(key: string): void
}

/** The text for visitors without access. A shop is closed if the service rejects its key. */
const doorSign = shopKey ? 'Our catalogue is closed to visitors at the moment.' : tagline

const wrong = 'The shop does not know this key. Is it complete?'

export function KeyForm({ isOpen, expired, onEnter }: Props) {
  const field = useRef<HTMLInputElement>(null)
  const [isShown, setShown] = useState(false)
  // A new object per rejection, so that a second one of the same key renders again.
  const [refused, enter, isEntering] = useActionState(
    async (_before: { key: string; why: string } | undefined, form: FormData) => {
      const key = String(form.get('key')).trim()
      if (!(await isTaken(key))) return { key, why: wrong }
      if (isOpen && !mayAdd(key)) return { key, why: 'This key may look, but not add animals.' }
      onEnter(key)
    },
    expired === undefined ? undefined : { key: expired, why: wrong },
  )
  useEffect(() => {
    if (refused) field.current?.focus()
  }, [refused])

  return (
    <div className="welcome">
      <div className="parade">
        {[...categories.values()].map(({ species }) => (
          <Portrait key={species} species={species} />
        ))}
      </div>
      <Page title={isOpen ? 'Staff' : `Welcome to ${shopName}`}>
        <p className="tagline">{isOpen ? 'With your key you can add animals.' : doorSign}</p>
        <form action={enter} autoComplete="off">
          <label htmlFor="key">Your key</label>
          <p className="hint" id="key-hint">
            {isOpen ? 'It is' : 'It opens the catalogue, and is'} forgotten when you close this tab.
          </p>
          <div className="secret">
            <input
              id="key"
              name="key"
              className="control"
              ref={field}
              type={isShown ? 'text' : 'password'}
              // With `off`, browsers fill a saved password in.
              autoComplete="new-password"
              required
              // The characters of a header; the browser does not send any other.
              pattern="\s*[!-~]+\s*"
              title="letters, digits and signs, without spaces"
              defaultValue={refused?.key}
              readOnly={isEntering}
              spellCheck={false}
              autoCapitalize="none"
              aria-invalid={refused !== undefined}
              aria-describedby="key-hint key-problem"
            />
            <button
              type="button"
              className="quiet"
              aria-label={isShown ? 'Hide the key' : 'Show the key'}
              onClick={() => setShown(!isShown)}
            >
              {isShown ? 'Hide' : 'Show'}
            </button>
          </div>
          <p className="problem" id="key-problem" role="alert">
            {!isEntering && refused?.why}
          </p>
          <button type="submit" disabled={isEntering}>
            {isEntering ? 'One moment…' : isOpen ? 'Enter' : 'Open the catalogue'}
          </button>
          {!isOpen && (
            <>
              {!shopKey && <p className="hint">{howToGetKey}</p>}
              <DeveloperNote>
                {shopKey
                  ? 'the service does not know the read-only key in VITE_PETSTORE_KEY. '
                  : 'this shop has no read-only key of its own in VITE_PETSTORE_KEY. '}
                In the folder of the service,{' '}
                <code>npm run keys -- create shop --read-only --forever</code> makes one. Put it
                into the file <code>.env.local</code> of this shop:{' '}
                <code>VITE_PETSTORE_KEY=petstore_read_…</code>
              </DeveloperNote>
            </>
          )}
        </form>
      </Page>
    </div>
  )
}
