/** The front door: says what the place is, and asks for the customer's key. */
import { useActionState, useEffect, useRef, useState } from 'react'
import { Page } from './Page.tsx'
import { Portrait } from './Portrait.tsx'
import { isTaken } from './petstore.ts'
import { categories, howToGetKey, shopName, tagline } from './shop.ts'

interface Props {
  /** A key that opened the shop before and is not taken any longer, if that is why this is shown. */
  expired: string | undefined
  /** Called with a key that the service takes. */
  onEnter(key: string): void
}

export function KeyForm({ expired, onEnter }: Props) {
  const field = useRef<HTMLInputElement>(null)
  const [isShown, setShown] = useState(false)
  // An object for each refusal: the second one of the same key is news, too.
  const [refused, open, isOpening] = useActionState(
    async (_before: { key: string } | undefined, form: FormData) => {
      const key = String(form.get('key')).trim()
      if (!(await isTaken(key))) return { key }
      onEnter(key)
    },
    expired === undefined ? undefined : { key: expired },
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
      <Page title={`Welcome to ${shopName}`}>
        <p className="tagline">{tagline}</p>
        <form action={open} autoComplete="off">
          <label htmlFor="key">Your key</label>
          <p className="hint" id="key-hint">
            It opens the catalogue, and is forgotten when you close this tab.
          </p>
          <div className="secret">
            <input
              id="key"
              name="key"
              className="control"
              ref={field}
              type={isShown ? 'text' : 'password'}
              required
              // What a header can carry; anything else would never leave the browser.
              pattern="\s*[!-~]+\s*"
              title="letters, digits and signs, without spaces"
              defaultValue={refused?.key}
              readOnly={isOpening}
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
            {refused && !isOpening && 'The shop does not know this key. Is it complete?'}
          </p>
          <button type="submit" disabled={isOpening}>
            {isOpening ? 'Opening…' : 'Open the catalogue'}
          </button>
          <p className="hint">{howToGetKey}</p>
        </form>
      </Page>
    </div>
  )
}
