/** Asks for the API key. */
import { Page } from './Page.tsx'

interface Props {
  /** The key that the service did not take, if that is why this is shown. */
  refused: string | undefined
  onEnter(key: string): void
}

export function KeyForm({ refused, onEnter }: Props) {
  return (
    <Page title="Welcome">
      <form
        className="panel"
        action={(form) => onEnter(String(form.get('key')).trim())}
        autoComplete="off"
      >
        <p>
          The catalogue opens with an API key of the service. The service prints one when it starts
          for the first time; <code>npm run keys -- create NAME</code> makes another.
        </p>
        <label htmlFor="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          required
          // What a header can carry; anything else would never leave the browser.
          pattern="\s*[!-~]+\s*"
          title="letters, digits and signs, without spaces"
          defaultValue={refused}
          spellCheck={false}
          aria-invalid={refused !== undefined}
          aria-describedby="key-problem"
        />
        <p className="problem" id="key-problem" role="alert">
          {refused !== undefined && 'The service does not know this key. Is it complete?'}
        </p>
        <button type="submit">Open the catalogue</button>
      </form>
    </Page>
  )
}
