import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32;

/**
 * Sends numbered requests, and ends with exit code 0 when each of them has been answered in order.
 *
 * At most 100 requests are unanswered at a time. If no answer arrives for a while, those that are
 * unanswered are sent again, because a service that was restarted has not received all of them.
 */
public final class Client
{
    private static final int REQUESTS = 1001;
    private static final int RESPONSES = 1002;
    private static final int COUNT = 500;
    private static final int UNANSWERED_MAX = 100;
    private static final int FRAGMENTS_MAX = 10;
    private static final long IDLE_NS = 500_000;
    private static final long INTERVAL_NS = 5_000_000;
    private static final long REPEAT_NS = 1_000_000_000L;
    /** Time in which an answer must arrive, also while the link is cut off. */
    private static final long TIMEOUT_NS = 20_000_000_000L;

    private int answered;

    public static void main(final String[] args) throws Exception
    {
        final Aeron.Context context =
            new Aeron.Context().aeronDirectoryName(System.getenv("AERON_DIR"));
        try (Aeron aeron = Aeron.connect(context);
            Subscription answers = aeron.addSubscription(System.getenv("RESPONSES"), RESPONSES);
            Publication requests = aeron.addPublication(System.getenv("REQUESTS"), REQUESTS))
        {
            new Client().run(requests, answers);
            requests.close();
            System.out.println("client: " + COUNT + " requests were answered");
            // The driver signals the end of the stream only while this client lives.
            Thread.sleep(500);
        }
    }

    private void run(final Publication requests, final Subscription answers)
    {
        final FragmentHandler take = (buffer, offset, length, header) ->
        {
            final byte[] answer = new byte[length];
            buffer.getBytes(offset, answer);
            take(answer);
        };
        long dueNs = System.nanoTime();
        long heardNs = dueNs;
        long repeatedNs = dueNs;
        int sent = 0;
        int following = 0;
        while (answered < COUNT)
        {
            final int before = answered;
            final long nowNs = System.nanoTime();
            following = Math.max(following, before);
            final boolean isDue =
                nowNs - dueNs >= 0 && following < Math.min(COUNT, before + UNANSWERED_MAX);
            // An offer is refused without a subscriber, and if the subscriber is too far behind.
            if (isDue && requests.offer(new UnsafeBuffer(request(following))) > 0)
            {
                if (following == sent)
                {
                    System.out.println("WT SENT requests " + sent + " " + checksum(request(sent)));
                    sent++;
                }
                following++;
                dueNs += INTERVAL_NS;
            }
            if (answers.poll(take, FRAGMENTS_MAX) == 0)
            {
                LockSupport.parkNanos(IDLE_NS);
            }
            if (answered > before)
            {
                heardNs = repeatedNs = nowNs;
            }
            else if (nowNs - heardNs > TIMEOUT_NS)
            {
                fail("request " + before + " was not answered in time");
            }
            else if (nowNs - repeatedNs > REPEAT_NS)
            {
                following = before;
                repeatedNs = nowNs;
            }
        }
    }

    private void take(final byte[] answer)
    {
        final String text = new String(answer, StandardCharsets.US_ASCII);
        if (Integer.parseInt(text.split(" ")[1]) != answered)
        {
            return; // It was answered before.
        }
        System.out.println("WT GOT responses " + answered + " " + checksum(answer));
        if (!Arrays.equals(answer, request(answered)))
        {
            fail("expected the answer to request " + answered + ", found " + text);
        }
        answered++;
    }

    private static byte[] request(final int number)
    {
        final String text = "request " + number + " " + "x".repeat(number * 37 % 1000);
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static long checksum(final byte[] message)
    {
        final CRC32 crc = new CRC32();
        crc.update(message);
        return crc.getValue();
    }

    private static void fail(final String why)
    {
        System.err.println("client: " + why);
        System.exit(1);
    }
}
